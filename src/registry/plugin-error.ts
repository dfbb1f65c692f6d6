/** Why the plugins that were asked for cannot be run: every problem, each with the plugin's name and what to do. */
export class PluginError extends Error {
  override readonly name = 'PluginError'

  constructor(
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(
      problems.length === 1
        ? problems[0]
        : `there are ${problems.length} problems with the plugins:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
      options,
    )
  }
}
