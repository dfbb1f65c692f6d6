/** Unix seconds in RFC 3339; undefined for 0, which stands for never. */
export function timeOf(seconds: number): string | undefined {
  return seconds > 0 && seconds < 1e11 ? `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` : undefined
}
