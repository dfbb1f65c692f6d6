/** The options of the plugin where none are given; the command line shows the same. */
export const batchDefaults = { /** Requests per second. */ rate: 500 } as const
