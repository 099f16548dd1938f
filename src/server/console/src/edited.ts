// A value that a person edits: it is what the page shows until it is edited, and again once the page shows another.
import { useEffect, useRef, useState } from "preact/hooks";

export function useEdited<T>(shown: T): [T, (value: T) => void] {
  const [value, setValue] = useState(shown);
  const last = useRef(shown);
  useEffect(() => {
    // An effect runs after the page is drawn: by then somebody may have typed.
    if (last.current === shown) return;
    last.current = shown;
    setValue(() => shown);
  }, [shown]);
  return [value, setValue];
}
