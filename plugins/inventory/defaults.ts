/** The options of the plugin where none are given; the command line shows the same. */
export const inventoryDefaults = {
  intervalMs: 60_000,
  fileRows: 250_000,
  /** Objects per second. */
  rate: 20_000,
} as const
