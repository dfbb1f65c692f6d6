/** The configured plugins cannot run. `problems` lists every problem, each with the plugin's name and a remedy. */
export class PluginError extends Error {
  override readonly name = 'PluginError'

  constructor(
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(
      problems.length === 1
        ? problems[0]
        : `the plugins have ${problems.length} problems:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
      options,
    )
  }
}
