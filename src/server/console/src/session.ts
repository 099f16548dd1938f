// What the screens share: who asks, which banks there are, and which one is looked at.
import { computed, signal } from "@preact/signals";
import type { BankPage, Status, TokenView } from "./forms";
import { change, place } from "./route";
import { asksForToken, failureOf, get, setToken } from "./service";

export const who = signal<TokenView | undefined>(undefined);
export const banks = signal<string[]>([]);
export const moreBanks = signal(false);
export const status = signal<Status | undefined>(undefined);
/** Why the service could not be asked at all. */
export const trouble = signal<string | undefined>(undefined);
/** Texts are blurred while somebody else sees the screen. */
export const hidesWords = signal(false);
/** Whether single letters are keys. */
export const hasLetterKeys = signal(true);

/** The bank that is looked at: that of the address, else the first. */
export const bank = computed(() => place.value.parameters.bank ?? banks.value[0] ?? "");

export const may = (right: TokenView["rights"][number]): boolean => who.value?.rights.includes(right) ?? false;

/** Asks who this is, and for the banks. */
export async function begin(): Promise<void> {
  try {
    const page = await get<BankPage>("banks", { limit: 500 });
    who.value = await get<TokenView>("token", {});
    banks.value = page.banks;
    moreBanks.value = page.next !== undefined && page.next !== null;
    trouble.value = undefined;
    await look();
  } catch (thrown) {
    const failure = failureOf(thrown);
    if (failure && failure.status !== 401) trouble.value = failure.message;
  }
}

/** Asks how the service is. */
export async function look(signal?: AbortSignal): Promise<void> {
  try {
    status.value = await get<Status>("status", {}, signal);
    trouble.value = undefined;
  } catch (thrown) {
    const failure = failureOf(thrown);
    if (failure && failure.status !== 401) trouble.value = failure.message;
  }
}

export function logIn(token: string): void {
  setToken(token);
  void begin();
}

export function logOut(): void {
  setToken("");
  who.value = undefined;
  banks.value = [];
  status.value = undefined;
  asksForToken.value = "The token is forgotten.";
}

export const choose = (bank: string): void =>
  change({
    bank,
    unit: undefined,
    part: undefined,
    turn: undefined,
    asof: undefined,
    from: undefined,
    to: undefined,
    person: undefined,
  });
