/** Where a storage provider can be. */
export const locations = ['Global', 'Asia', 'Africa', 'North America', 'South America', 'Europe', 'Oceania'] as const

/** The location that a text names, in any case; undefined for another text. */
export function locationOf(text: string): string | undefined {
  return locations.find((location) => location.toLowerCase() === text.toLowerCase())
}
