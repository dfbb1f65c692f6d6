import { loadPlugins } from '../../plugins/loading/load-plugins.js'
import { type Config, ConfigError } from '../config/config.js'
import { EXIT_FAILURE } from '../failure.js'
import { builtInPlugins } from './built-in-plugins.js'

export interface CheckFlags {
  /** JSON */
  readonly options?: string
}

/** Time after which the command ends even if the stopped plugin still has running work, ms. */
const LINGER_MS = 1000

/** `dealgate plugin check`: runs the contract suite, prints one line per check, and sets the exit code. */
export async function checkPluginAt(config: Config, use: string, flags: CheckFlags): Promise<void> {
  const configured = config.plugins?.find((plugin) => plugin.use === use)
  const options = flags.options === undefined ? configured?.options : parsed(flags.options)
  const from = configured?.from ?? process.cwd()
  const [loaded] = await loadPlugins([{ use, options, from }], builtInPlugins)
  if (!loaded) throw new TypeError('one plugin was asked for, and none came')
  const { checkPlugin } = await import('../../../test/suites/plugin-suite.js')
  let passed = 0
  let failed = 0
  for await (const { name, ok, detail } of checkPlugin(loaded, options)) {
    if (ok) passed++
    else failed++
    process.stdout.write(ok ? `ok     ${name}\n` : `WRONG  ${name}: ${detail}\n`)
  }
  process.stdout.write(`${loaded.plugin.name}: ${passed} checks passed, ${failed} failed\n`)
  if (failed > 0) process.exitCode = EXIT_FAILURE
  setTimeout(() => process.exit(), LINGER_MS).unref()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConfigError([`--options must be JSON: ${(error as Error).message}`])
  }
}
