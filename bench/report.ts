export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** One line: what, both medians with their unit, and the ratio proxy/direct. */
export function report(what: string, unit: string, proxy: readonly number[], direct: readonly number[]): void {
  const a = median(proxy)
  const b = median(direct)
  console.log(
    `${what.padEnd(28)} proxy ${format(a)} ${unit}   direct ${format(b)} ${unit}   ratio ${(a / b).toFixed(2)}`,
  )
}

function format(value: number): string {
  return value.toFixed(value < 10 ? 2 : 0).padStart(8)
}
