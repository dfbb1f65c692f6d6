import type { z } from 'zod'
import { messageOf } from './blame.js'
import type { Plugin, PluginDefinition } from './plugin.js'
import { PluginError } from './plugin-error.js'

/** Throws PluginError for options that do not fit, and for what `create` throws. */
export function makePlugin<Schema extends z.ZodType>(definition: PluginDefinition<Schema>, options: unknown): Plugin {
  const { name } = definition
  const read = readOptions(definition, options)
  return attempt(name, 'cannot be made with these options', () => {
    const made: unknown = definition.create(read)
    if (typeof made !== 'object' || made === null || 'then' in made)
      throw new TypeError(
        'create() must return an object, and not a promise of one: what takes time belongs into start()',
      )
    return { ...(made as Omit<Plugin, 'name'>), name }
  })
}

function readOptions<Schema extends z.ZodType>(
  definition: PluginDefinition<Schema>,
  options: unknown,
): z.output<Schema> {
  const { name, options: schema } = definition
  const given = options ?? {}
  if (!schema) {
    const problems = Object.keys(given).map((option) => `takes no options: leave out ${option}`)
    return refuse(name, problems) as z.output<Schema>
  }
  if (schema._zod === undefined) refuse(name, ['has options that are no schema of zod 4'])
  const result = attempt(name, 'cannot check its options', () => schema.safeParse(given))
  const unknown = unknownOptions(schema, given).map((path) => `option ${path}: there is no such option`)
  const issues = (result.error?.issues ?? []).map(({ path, message }) =>
    path.length > 0 ? `option ${pathText(path)}: ${said(message)}` : message,
  )
  refuse(name, [...unknown, ...issues])
  return result.data as z.output<Schema>
}

/** Zod tells what it has expected instead of what is absent. */
function said(message: string): string {
  const [, expected] = /^Invalid input: expected (.+), received undefined$/.exec(message) ?? []
  return expected === undefined ? message : `is missing, and must be given (${expected})`
}

function refuse(name: string, problems: readonly string[]): undefined {
  if (problems.length > 0) throw new PluginError(problems.map((problem) => `the plugin "${name}": ${problem}`))
}

function attempt<T>(name: string, failure: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new PluginError([`the plugin "${name}": ${failure}: ${messageOf(cause)}`], { cause })
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i > 0 ? '.' : ''}${String(part)}`)).join('')
}

/** What this needs to know of a schema, which may be of another copy of zod. https://zod.dev/library-authors */
interface Definition {
  readonly type?: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly catchall?: unknown
  readonly innerType?: z.ZodType
}

/** Paths of members that `z.object` would drop without a word: a misspelt option must not be one that is not there. */
function unknownOptions(schema: z.ZodType, value: unknown, path = ''): string[] {
  const { type, shape, catchall, innerType }: Definition = schema._zod.def
  if (innerType) return unknownOptions(innerType, value, path)
  if (type !== 'object' || !shape || catchall !== undefined || typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const known = Object.hasOwn(shape, name) ? shape[name] : undefined
    return known ? unknownOptions(known, member, `${path}${name}.`) : [`${path}${name}`]
  })
}
