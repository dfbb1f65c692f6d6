import { setImmediate } from 'node:timers/promises'

/** Elements that are sorted or merged before the event loop continues: a few milliseconds of work. */
const SLICE = 8192

/**
 * The numbers 0 to count-1 in the order of `compare`. A merge sort that lets the event loop continue between slices.
 */
export async function sortInSlices(count: number, compare: (a: number, b: number) => number): Promise<Uint32Array> {
  let from = Uint32Array.from({ length: count }, (_, i) => i)
  for (let low = 0; low < count; low += SLICE) {
    from.subarray(low, low + SLICE).sort(compare)
    await setImmediate()
  }
  let to = new Uint32Array(count)
  for (let width = SLICE; width < count; width *= 2) {
    for (let low = 0; low < count; low += 2 * width) {
      const middle = Math.min(low + width, count)
      await merge(from.subarray(low, middle), from.subarray(middle, low + 2 * width), to.subarray(low), compare)
    }
    ;[from, to] = [to, from]
  }
  return from
}

async function merge(
  left: Uint32Array,
  right: Uint32Array,
  out: Uint32Array,
  compare: (a: number, b: number) => number,
): Promise<void> {
  let l = 0
  let r = 0
  for (let n = 0; n < left.length + right.length; n++) {
    const takeLeft = r >= right.length || (l < left.length && compare(left[l] as number, right[r] as number) <= 0)
    out[n] = (takeLeft ? left[l++] : right[r++]) as number
    if (n % SLICE === SLICE - 1) await setImmediate()
  }
}
