// SHA-256 (FIPS 180-4) where no answer can be waited for: the platform's own is asynchronous.

/** The hash of a text in UTF-8, as 64 hexadecimal digits. */
export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  let state = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
  const padded = new DataView(new ArrayBuffer((((bytes.length + 8) >> 6) + 1) << 6));
  new Uint8Array(padded.buffer).set(bytes);
  padded.setUint8(bytes.length, 128);
  padded.setUint32(padded.byteLength - 4, bytes.length * 8);
  const w = new Int32Array(64);
  const word = (n: number) => w[n] as number;
  for (let at = 0; at < padded.byteLength; at += 64) {
    let now = state;
    primes.forEach((prime, n) => {
      w[n] =
        n < 16
          ? padded.getInt32(at + n * 4)
          : word(n - 16) + mixed(word(n - 15), 7, 18, 3) + word(n - 7) + mixed(word(n - 2), 17, 19, 10);
      const [a, b, c, d, e, f, g, h] = now as [number, number, number, number, number, number, number, number];
      const one =
        h +
        (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
        ((e & f) ^ (~e & g)) +
        fraction(Math.cbrt(prime)) +
        word(n);
      const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      now = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    });
    state = state.map((value, n) => (value + (now[n] as number)) | 0);
  }
  return state.map((value) => (value >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The first 32 bits behind the point. */
function fraction(root: number): number {
  return (root * 2 ** 32) | 0;
}

function turned(x: number, bits: number): number {
  return (x >>> bits) | (x << (32 - bits));
}

function mixed(x: number, one: number, two: number, shift: number): number {
  return turned(x, one) ^ turned(x, two) ^ (x >>> shift);
}
