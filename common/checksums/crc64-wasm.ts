/** The polynomial of CRC-64/NVME, reflected, without its highest term. */
export const CRC64NVME_POLYNOMIAL = 0x9a6c9329ac4bc9b5n

/*
 * CRC-64/NVME in WebAssembly, whose module is assembled here: it is two loops. WebAssembly has no carry-less
 * multiplication, by which native code computes CRCs, so `fold` shortens the bytes first, as Chorba does:
 * https://arxiv.org/abs/2412.16398. A multiple of the polynomial has eight terms: x^(8 * 3610), and one at each of
 * these distances below it, in bytes. So a byte can be removed if it is added (XOR) to the bytes at these distances
 * behind it, which vectors of 16 bytes do without tables.
 */
const DISTANCES = [71, 219, 2464, 2823, 3082, 3370, 3610]

/** Bytes that are left of any number of bytes: the longest distance, in whole steps. */
const REST = 3616
/** Bytes of a step of `fold`, and those of a step of `crc`. */
const FOLDED = 32
const SLICES = 16
/** Fewer bytes are not worth folding. */
const LEAST = 2 * REST

// Memory: the tables; zeros, in place of the bytes before the first; the bytes; the rest of them.
const ZEROS = SLICES * 256 * 8
const BYTES = ZEROS + REST
const MOST = 65_536
const TAIL = BYTES + MOST
const PAGES = Math.ceil((TAIL + REST) / 65_536)

/** The part of the global object that is used here, which the types of Node.js leave out. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: object }
}

interface Loops {
  readonly memory: { readonly buffer: ArrayBuffer }
  /** The state after the bytes from `at` to `end`, which are a multiple of SLICES. */
  crc(at: number, end: number, state: bigint): bigint
  /** Adds, to the bytes from `to` on, those at the distances before them; `at` is REST before, `end` exclusive. */
  fold(at: number, to: number, end: number): void
}

/** One instance, which keeps nothing between two calls. */
export class Crc64Engine {
  readonly #loops: Loops
  readonly #bytes: Uint8Array
  readonly #words: BigUint64Array

  /** Undefined where WebAssembly is switched off (`node --jitless`) or the processor has no vectors. */
  static make(): Crc64Engine | undefined {
    try {
      return new Crc64Engine()
    } catch {
      return undefined
    }
  }

  private constructor() {
    this.#loops = new WebAssembly.Instance(new WebAssembly.Module(assembled())).exports as Loops
    this.#bytes = new Uint8Array(this.#loops.memory.buffer)
    this.#words = new BigUint64Array(this.#loops.memory.buffer)
    const tables = this.#words.subarray(0, SLICES * 256)
    for (let byte = 0; byte < 256; byte++) {
      let state = BigInt(byte)
      for (let bit = 0; bit < 8; bit++) state = state & 1n ? (state >> 1n) ^ CRC64NVME_POLYNOMIAL : state >> 1n
      tables[byte] = state
    }
    for (let i = 256; i < tables.length; i++) {
      const last = tables[i - 256] as bigint
      tables[i] = (last >> 8n) ^ (tables[Number(last & 0xffn)] as bigint)
    }
  }

  /** The state after further bytes; that before the first byte is all ones. */
  update(state: bigint, bytes: Uint8Array): bigint {
    let next = state
    for (let at = 0; at < bytes.length; at += MOST) next = this.#update(next, bytes.subarray(at, at + MOST))
    return next
  }

  #update(state: bigint, bytes: Uint8Array): bigint {
    this.#bytes.set(bytes, BYTES)
    const end = BYTES + bytes.length
    let next = state
    let at = BYTES
    if (bytes.length >= LEAST) {
      at += bytes.length - (bytes.length % FOLDED)
      next = this.#folded(next, at)
    }
    const whole = end - ((end - at) % SLICES)
    if (whole > at) next = this.#loops.crc(at, whole, next)
    next = BigInt.asUintN(64, next)
    for (let i = whole; i < end; i++) {
      const byte = Number(next & 0xffn) ^ (this.#bytes[i] as number)
      next = (next >> 8n) ^ (this.#words[byte] as bigint)
    }
    return next
  }

  /** The state after the bytes before `end`. */
  #folded(state: bigint, end: number): bigint {
    const { crc, fold } = this.#loops
    const first = BYTES / 8
    this.#words[first] = (this.#words[first] as bigint) ^ BigInt.asUintN(64, state)
    const rest = end - REST
    fold(BYTES - REST, BYTES, rest)
    this.#bytes.copyWithin(TAIL, rest, end)
    this.#bytes.fill(0, rest, end)
    fold(rest - REST, TAIL, TAIL + REST)
    return crc(TAIL, TAIL + REST, 0n)
  }
}

// https://webassembly.github.io/spec/core/binary/instructions.html
const I32 = 0x7f
const I64 = 0x7e
const END = 0x0b
const I32_ADD = 0x6a
const I32_AND = 0x71
const I32_LESS = 0x49
const I32_SHL = 0x74
const I32_WRAP = 0xa7
const I64_SHR = 0x88
const I64_XOR = 0x85
const LOOP = [0x03, 0x40]
const AGAIN = [0x0d, 0]
const V128_XOR = [0xfd, 0x51]

/** LEB128 of an integer from 0: the unsigned form, then the signed one. */
function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)]
}

function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >> 7)]
}

const get = (local: number): number[] => [0x20, local]
const set = (local: number): number[] => [0x21, local]
const tee = (local: number): number[] => [0x22, local]
const i32 = (value: number): number[] => [0x41, ...signed(value)]
const i64 = (value: number): number[] => [0x42, ...signed(value)]
const load64 = (offset: number): number[] => [0x29, 0, ...leb(offset)]
const loadVector = (offset: number): number[] => [0xfd, 0, 0, ...leb(offset)]
const storeVector = (offset: number): number[] => [0xfd, 0x0b, 0, ...leb(offset)]
const list = (items: readonly (readonly number[])[]): number[] => [...leb(items.length), ...items.flat()]
const sized = (bytes: readonly number[]): number[] => [...leb(bytes.length), ...bytes]

/** Adds `step` to a local and repeats the loop while it is below another. */
function repeat(local: number, step: number, end: number): number[] {
  return [...get(local), ...i32(step), I32_ADD, ...tee(local), ...get(end), I32_LESS, ...AGAIN, END]
}

/** Tables for each of the bytes of a step ("slicing"). Parameters: at, end, state. */
function crcLoop(): number[] {
  const words = SLICES / 8
  const code = [...leb(1), ...leb(words), I64, ...LOOP]
  for (let word = 0; word < words; word++) {
    code.push(...get(0), ...load64(word * 8), ...(word === 0 ? [...get(2), I64_XOR] : []), ...set(3 + word))
  }
  for (let i = 0; i < SLICES; i++) {
    const shift = (i % 8) * 8 - 3
    // The byte, eight times: an offset in its table.
    const shifted = shift < 0 ? [I32_WRAP, ...i32(3), I32_SHL] : [...i64(shift), I64_SHR, I32_WRAP]
    code.push(...get(3 + Math.floor(i / 8)), ...shifted, ...i32(0x7f8), I32_AND, ...load64((SLICES - 1 - i) * 2048))
    if (i > 0) code.push(I64_XOR)
  }
  return [...code, ...set(2), ...repeat(0, SLICES, 1), ...get(2), END]
}

/** Parameters: at, to, end. */
function foldLoop(): number[] {
  const code = [...leb(0), ...LOOP]
  for (let offset = 0; offset < FOLDED; offset += 16) {
    code.push(...get(1), ...get(1), ...loadVector(offset))
    for (const distance of DISTANCES) code.push(...get(0), ...loadVector(REST - distance + offset), ...V128_XOR)
    code.push(...storeVector(offset))
  }
  return [...code, ...get(0), ...i32(FOLDED), I32_ADD, ...set(0), ...repeat(1, FOLDED, 2), END]
}

function assembled(): Uint8Array<ArrayBuffer> {
  const name = (text: string) => sized([...Buffer.from(text)])
  const section = (id: number, content: readonly number[]) => [id, ...sized(content)]
  const types = [
    [0x60, 3, I32, I32, I64, 1, I64],
    [0x60, 3, I32, I32, I32, 0],
  ]
  const exported = [
    [...name('crc'), 0, 0],
    [...name('fold'), 0, 1],
    [...name('memory'), 2, 0],
  ]
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list(types)),
    ...section(3, list([[0], [1]])),
    ...section(5, list([[0, PAGES]])),
    ...section(7, list(exported)),
    ...section(10, list([sized(crcLoop()), sized(foldLoop())])),
  ])
}
