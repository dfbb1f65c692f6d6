import { CRC64NVME_POLYNOMIAL, Crc64Engine } from './crc64-wasm.js'

/*
 * CRC-64/NVME: reflected polynomial 0x9A6C9329AC4BC9B5, all ones at the start and inverted at the end. NVM Command Set
 * Specification 1.0, section 5.2.1.3.4; https://reveng.sourceforge.io/crc-catalogue/17plus.htm#crc.cat.crc-64-nvme
 */

const POLY_HIGH = Number(CRC64NVME_POLYNOMIAL >> 32n) | 0
const POLY_LOW = Number(CRC64NVME_POLYNOMIAL & 0xffffffffn) | 0
const SLICES = 8

/** Entry `slice * 256 + byte`: the state of `byte` after `slice` further zero bytes. */
const HIGH = new Int32Array(SLICES * 256)
const LOW = new Int32Array(SLICES * 256)

for (let byte = 0; byte < 256; byte++) {
  let high = 0
  let low = byte
  for (let bit = 0; bit < 8; bit++) {
    const carry = low & 1
    low = (low >>> 1) | (high << 31)
    high >>>= 1
    if (carry) {
      low ^= POLY_LOW
      high ^= POLY_HIGH
    }
  }
  HIGH[byte] = high
  LOW[byte] = low
}
for (let i = 256; i < SLICES * 256; i++) {
  const high = HIGH[i - 256] as number
  const low = LOW[i - 256] as number
  HIGH[i] = (high >>> 8) ^ (HIGH[low & 0xff] as number)
  LOW[i] = ((low >>> 8) | (high << 24)) ^ (LOW[low & 0xff] as number)
}

/** What both forms of the computation have. */
interface Crc64 {
  update(bytes: Uint8Array): void
  /** Eight bytes, big-endian. */
  digest(): Buffer
}

/** The engine, made for the first body that needs it; null where it cannot be made. */
const wasm: { engine?: Crc64Engine | null } = {}

/** Starts the CRC of a body: by WebAssembly where the runtime has it (5 GB/s), else by JavaScript (0.9 GB/s). */
export function createCrc64(): Crc64 {
  if (wasm.engine === undefined) wasm.engine = Crc64Engine.make() ?? null
  return wasm.engine ? new WasmCrc64(wasm.engine) : new Crc64Nvme()
}

class WasmCrc64 implements Crc64 {
  readonly #engine: Crc64Engine
  #state = 0xffff_ffff_ffff_ffffn

  constructor(engine: Crc64Engine) {
    this.#engine = engine
  }

  update(bytes: Uint8Array): void {
    this.#state = this.#engine.update(this.#state, bytes)
  }

  digest(): Buffer {
    const out = Buffer.allocUnsafe(8)
    out.writeBigUInt64BE(BigInt.asUintN(64, ~this.#state))
    return out
  }
}

/**
 * Processes eight bytes per step by tables ("slicing by 8"), in 32-bit halves: BigInt would be a hundred times slower.
 */
export class Crc64Nvme implements Crc64 {
  #high = -1
  #low = -1

  update(bytes: Uint8Array): void {
    // The casts avoid checks that the bounds guarantee: every index below is masked to its table or less than `end`.
    let high = this.#high
    let low = this.#low
    const end = bytes.length
    const whole = end - (end % SLICES)
    let i = 0
    for (; i < whole; i += SLICES) {
      low ^=
        (bytes[i] as number) |
        ((bytes[i + 1] as number) << 8) |
        ((bytes[i + 2] as number) << 16) |
        ((bytes[i + 3] as number) << 24)
      high ^=
        (bytes[i + 4] as number) |
        ((bytes[i + 5] as number) << 8) |
        ((bytes[i + 6] as number) << 16) |
        ((bytes[i + 7] as number) << 24)
      const a = 1792 | (low & 0xff)
      const b = 1536 | ((low >>> 8) & 0xff)
      const c = 1280 | ((low >>> 16) & 0xff)
      const d = 1024 | (low >>> 24)
      const e = 768 | (high & 0xff)
      const f = 512 | ((high >>> 8) & 0xff)
      const g = 256 | ((high >>> 16) & 0xff)
      const h = high >>> 24
      high =
        (HIGH[a] as number) ^
        (HIGH[b] as number) ^
        (HIGH[c] as number) ^
        (HIGH[d] as number) ^
        (HIGH[e] as number) ^
        (HIGH[f] as number) ^
        (HIGH[g] as number) ^
        (HIGH[h] as number)
      low =
        (LOW[a] as number) ^
        (LOW[b] as number) ^
        (LOW[c] as number) ^
        (LOW[d] as number) ^
        (LOW[e] as number) ^
        (LOW[f] as number) ^
        (LOW[g] as number) ^
        (LOW[h] as number)
    }
    for (; i < end; i++) {
      const index = (low ^ (bytes[i] as number)) & 0xff
      low = ((low >>> 8) | (high << 24)) ^ (LOW[index] as number)
      high = (high >>> 8) ^ (HIGH[index] as number)
    }
    this.#high = high
    this.#low = low
  }

  digest(): Buffer {
    const out = Buffer.allocUnsafe(8)
    out.writeInt32BE(~this.#high, 0)
    out.writeInt32BE(~this.#low, 4)
    return out
  }
}
