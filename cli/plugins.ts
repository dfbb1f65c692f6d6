import type { Plugin } from '../src/api/plugin.js'
import { type OptionFacts, optionFacts } from '../src/plugins/option-facts.js'
import { routeText } from '../src/plugins/table.js'
import { corePlugins } from '../src/server/core-plugins.js'
import { builtInPlugins, obtainPlugins } from './built-in-plugins.js'
import { EXIT_FAILURE } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { type Loadable, loadPlugins } from './process/load-plugins.js'

interface CheckFlags {
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
  const [loaded] = await loadPlugins([{ use, options, from }], await builtInPlugins([use]))
  if (!loaded) throw new TypeError('one plugin was asked for, and none came')
  const { checkPlugin } = await import('../test/suites/plugin-suite.js')
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

interface Row {
  readonly plugin: Pick<Plugin, 'name' | 'operations' | 'hooks' | 'storageClasses' | 'jobs'>
  readonly source: string
  readonly definition?: Loadable['definition']
}

const CORE: readonly Row[] = corePlugins.map((plugin) => ({ plugin, source: 'always on' }))

export async function listPlugins(config: Config, { explain = false }: { explain?: boolean }): Promise<void> {
  const running = await obtainPlugins(config)
  const names = new Set(running.map(({ plugin }) => plugin.name))
  const off = (await builtInPlugins()).filter(({ definition }) => !names.has(definition.name))
  const rows = [...CORE, ...running, ...(await Promise.all(off.map(asOff)))]
  process.stdout.write(explain ? rows.map(explanation).join('\n') : overview(rows))
}

/** Describes a built-in plugin that is off, created without options if that is possible. */
async function asOff(plugin: Loadable): Promise<Row> {
  const { name } = plugin.definition
  const [loaded] = await loadPlugins([{ use: name, from: '.' }], [plugin]).catch(() => [])
  return { definition: plugin.definition, plugin: loaded?.plugin ?? { name, operations: [] }, source: 'built-in, off' }
}

function overview(rows: readonly Row[]): string {
  const cells = rows.map(({ plugin, source }) => [plugin.name, source, contents(plugin)])
  const widths = [0, 1].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells.map((row) => `${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}\n`).join('')
}

function contents({ operations, hooks, storageClasses = [], jobs = [] }: Row['plugin']): string {
  const parts = [
    operations.length === 1 ? '1 operation' : `${operations.length} operations`,
    storageClasses.length > 0 && `storage classes ${storageClasses.map(({ name }) => name).join(', ')}`,
    hooks && `hooks ${Object.keys(hooks).join(', ')}`,
    jobs.length > 0 && `jobs ${jobs.map(({ name }) => name).join(', ')}`,
  ]
  return parts.filter(Boolean).join('; ')
}

function explanation({ plugin, source, definition }: Row): string {
  const options = optionFacts(definition?.options)
  return [
    `${plugin.name} (${source})`,
    ...(definition?.summary ? [`  ${definition.summary}`] : []),
    ...(definition ? [options.length > 0 ? '  Options:' : '  It takes no options.'] : []),
    ...columns(options.map((option) => [option.name, facts(option), option.description])),
    ...(plugin.operations.length > 0 ? ['  Operations:'] : []),
    ...columns(
      plugin.operations.map((operation) => [
        operation.name,
        routeText(operation),
        operation.call?.summary ?? operation.source,
      ]),
    ),
    '',
  ].join('\n')
}

/** `[integer, 1 to 10; default 3]` */
function facts({ accepts, default: standard, required }: OptionFacts): string {
  return `[${[accepts, required ? 'required' : standard && `default ${standard}`].filter(Boolean).join('; ')}]`
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = [0, 1].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => `    ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd())
}
