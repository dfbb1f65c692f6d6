export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** Nearest rank; the mean of the two middle values for an even median. NaN for no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  if (share === 0.5 && sorted.length > 0 && sorted.length % 2 === 0) {
    const upper = sorted.length / 2
    return ((sorted[upper - 1] as number) + (sorted[upper] as number)) / 2
  }
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}

/** Half the distance between the smallest and the largest value, in parts of the median. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / 2 / median(values)
}
