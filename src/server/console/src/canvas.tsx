// What the pictures on canvases share: their size and look, panning and zooming, the layer that is copied, the tip.
//
// In: a canvas and its box. Out: hooks and small elements. Nothing here draws what a picture shows.
import { select } from "d3-selection";
import { type ZoomTransform, zoom, zoomIdentity } from "d3-zoom";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Size {
  width: number;
  height: number;
}

/** The size of an element, and a number that changes with the system's look. */
export function useSizeAndLook(box: RefObject<HTMLElement | null>): { size: Size; look: number } {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  const [look, setLook] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setLook((look) => look + 1);
    dark.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", changed);
    };
  }, []);
  return { size, look };
}

/** Pans and zooms a canvas, up to `most` times; `moved` copies its layer again, `ended` gets the scale. */
export function usePanZoom(
  canvas: RefObject<HTMLCanvasElement | null>,
  size: Size,
  most: number,
  moved: () => void,
  ended: (scale: number) => void = () => {},
): { transform: { current: ZoomTransform }; zoomBy: (by: number) => void } {
  const transform = useRef<ZoomTransform>(zoomIdentity);
  const zooming = useRef<(by: number) => void>(() => {});
  useEffect(() => {
    const element = canvas.current;
    if (!element || !size.width) return;
    const behaviour = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([1, most])
      .translateExtent([
        [0, 0],
        [size.width, size.height],
      ])
      // The wheel scrolls the page; with Ctrl, as a pinch sends it, it zooms here.
      .filter((event: Event) =>
        event.type === "wheel" ? (event as WheelEvent).ctrlKey : !("button" in event) || event.button === 0,
      )
      .on("zoom", (event: { transform: ZoomTransform }) => {
        transform.current = event.transform;
        moved();
      })
      .on("end", (event: { transform: ZoomTransform }) => ended(event.transform.k));
    // A click shows a unit, so two of them do not zoom.
    select(element).call(behaviour).on("dblclick.zoom", null);
    zooming.current = (by) => behaviour.scaleBy(select(element), by);
    return () => {
      select(element).on(".zoom", null);
    };
  }, [size.width, size.height]);
  return { transform, zoomBy: (by) => zooming.current(by) };
}

/** Copies a layer onto its canvas as it is panned and zoomed; returns the context for what stands above it. */
export function copyLayer(
  element: HTMLCanvasElement,
  layer: HTMLCanvasElement,
  size: Size,
  { x, y, k }: ZoomTransform,
): CanvasRenderingContext2D | null {
  const context = element.getContext("2d");
  if (!context) return null;
  const ratio = devicePixelRatio || 1;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, element.width, element.height);
  context.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
  context.drawImage(layer, 0, 0, size.width, size.height);
  return context;
}

/** Words beside the pointer. */
export function Tip({ at, size, children }: { at: { x: number; y: number }; size: Size; children: ComponentChildren }) {
  return (
    <div
      class={`tip words${at.y > size.height / 2 ? " above" : ""}`}
      style={{ left: `${Math.max(8, Math.min(at.x, size.width - 268))}px`, top: `${at.y}px` }}
    >
      {children}
    </div>
  );
}

export function ZoomButtons({ zoomBy }: { zoomBy: (by: number) => void }) {
  return (
    <div class="zoom">
      <button type="button" aria-label="Zoom in" onClick={() => zoomBy(1.5)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" onClick={() => zoomBy(1 / 1.5)}>
        −
      </button>
    </div>
  );
}
