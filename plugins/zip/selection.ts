import { S3Error, z } from 'dealgate/plugin'

/** Most keys and prefixes that a request names. */
const MAX_NAMED = 1000

const MAX_KEY = 1024

const key = z.string().min(1).max(MAX_KEY)

/** The body of a request for an archive. */
export const selectionBody = z.strictObject({
  Keys: z.array(key).max(MAX_NAMED).optional().meta({ element: 'Key' }).describe('Objects.'),
  Versions: z
    .array(z.strictObject({ Key: key, VersionId: z.string().min(1).max(1024) }))
    .max(MAX_NAMED)
    .optional()
    .meta({ element: 'Version' })
    .describe('Versions of objects.'),
  Prefixes: z
    .array(z.string().max(MAX_KEY))
    .max(MAX_NAMED)
    .optional()
    .meta({ element: 'Prefix' })
    .describe('All objects whose keys begin with one of them; an empty one stands for the whole bucket.'),
  Folder: z
    .string()
    .max(MAX_KEY)
    .regex(/\/$/)
    .optional()
    .describe('Paths in the archive begin behind it. Ends in `/`; keys that do not begin with it keep all of theirs.'),
  Name: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Name of the file, without `.zip`. Default: that of the bucket.'),
  Level: z.int().min(0).max(9).optional().describe('Of compression; default 0, none.'),
})

export interface Selection {
  readonly objects: readonly { readonly key: string; readonly versionId?: string }[]
  readonly prefixes: readonly string[]
  readonly folder: string
  readonly name?: string
  readonly level: number
}

/** Each object once: a prefix within another, or a key below one, names nothing more. Throws InvalidArgument. */
export function selectionOf(body: z.output<typeof selectionBody>): Selection {
  const { Keys = [], Versions = [], Prefixes = [], Folder = '', Name, Level = 0 } = body
  const count = Keys.length + Versions.length + Prefixes.length
  if (count === 0 || count > MAX_NAMED)
    throw invalid('Keys', `A request names 1 to ${MAX_NAMED} keys, versions and prefixes; this one names ${count}.`)
  const prefixes: string[] = []
  for (const prefix of [...new Set(Prefixes)].sort((one, other) => one.length - other.length))
    if (!prefixes.some((wider) => prefix.startsWith(wider))) prefixes.push(prefix)
  const isBelow = (named: string) => prefixes.some((prefix) => named.startsWith(prefix))
  const keys = [...new Set(Keys)].filter((named) => !isBelow(named)).map((named) => ({ key: named }))
  const versions = new Map(
    Versions.map(({ Key, VersionId }) => [JSON.stringify([Key, VersionId]), { key: Key, versionId: VersionId }]),
  )
  const objects = [...keys, ...versions.values()]
  return {
    ...{ objects, prefixes: prefixes.toSorted(), folder: Folder, level: Level },
    ...(Name !== undefined && { name: Name }),
  }
}

/** The parameters of a GET. `versionId` is none of them, but a sub-resource of S3: a body names versions. */
export const PARAMETERS = ['key', 'prefix', 'folder', 'name', 'level', 'selection'] as const

/** @param entries the query; @returns a body that is not checked yet */
export function bodyOf(entries: readonly (readonly [name: string, value: string])[]): unknown {
  const all = (wanted: string) => entries.flatMap(([name, value]) => (name === wanted ? [value] : []))
  const one = (wanted: string) => all(wanted).at(0)
  const level = one('level')
  return {
    ...{ Keys: all('key'), Prefixes: all('prefix'), Folder: one('folder'), Name: one('name') },
    Level: level === undefined ? undefined : /^\d$/.test(level) ? Number(level) : level,
  }
}

/** Reads a body by its schema. Throws InvalidArgument that names the member. */
export function checked(body: unknown): z.output<typeof selectionBody> {
  const read = selectionBody.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const at = issue?.path.join('.') ?? ''
  throw invalid(at === '' ? 'body' : at, `${at === '' ? '' : `${at}: `}${issue?.message ?? 'is not valid'}.`)
}

export function invalid(name: string, message: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentName: name } })
}

/** The headers of an archive that browsers save under its name. */
export function headersOf({ name }: Selection, bucket: string): Record<string, string> {
  const file = `${(name ?? bucket).replace(/[\p{Cc}\p{Cf}<>:"/\\|?*]/gu, '_').replace(/^\.+/, '_')}.zip`
  const encoded = encodeURIComponent(file).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return {
    'content-type': 'application/zip',
    'content-disposition': `attachment; filename*=UTF-8''${encoded}`,
    'cache-control': 'no-store',
  }
}
