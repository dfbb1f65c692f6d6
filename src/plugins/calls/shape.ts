import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'

/**
 * The structure of a schema, as far as reading text and writing XML need it. `scalar`: text, number or boolean. `any`:
 * any value. A list with an `element` is wrapped: each item is an `<element>` inside the member's element. Any other
 * list repeats its member's element.
 */
export type Shape = (ScalarShape | ListShape | ObjectShape) & { readonly nullable: boolean }

interface ScalarShape {
  readonly kind: 'text' | 'number' | 'boolean' | 'scalar' | 'any'
}

export interface ListShape {
  readonly kind: 'list'
  readonly item: Shape
  readonly element?: string
}

export interface ObjectShape {
  readonly kind: 'object'
  readonly members: ReadonlyMap<string, Member>
  /** Names of members by their normalized names. */
  readonly names: ReadonlyMap<string, string>
  /** Shape of additional members; undefined if none are allowed. */
  readonly rest: Shape | undefined
}

interface Member {
  readonly shape: Shape
  readonly required: boolean
}

export interface SchemaNode {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, SchemaNode>>
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
  readonly allOf?: readonly SchemaNode[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | SchemaNode
  readonly items?: SchemaNode
  /** Extension keyword, from `.meta({ element: 'Tag' })`. */
  readonly element?: string
  readonly description?: string
  /** Regular expression for text. */
  readonly pattern?: string
}

/** A proxy, and each further one in the process, asks for the shape of a schema several times. */
const known = { input: new WeakMap<z.ZodType, Shape>(), output: new WeakMap<z.ZodType, Shape>() }

/**
 * @param io selects the input or the output of a schema that transforms values
 * @throws Error for two members whose names differ only in case, underscores and hyphens
 */
export function shapeOf(schema: z.ZodType, io: 'input' | 'output'): Shape {
  const before = known[io].get(schema)
  if (before) return before
  const root = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as SchemaNode
  const shape = new Shapes(root).of(root)
  known[io].set(schema, shape)
  return shape
}

class Shapes {
  readonly #root: SchemaNode
  readonly #byRef = new Map<string, Shape>()

  constructor(root: SchemaNode) {
    this.#root = root
  }

  of(node: SchemaNode): Shape {
    if (node.$ref !== undefined) return this.#referred(node.$ref)
    const choices = node.anyOf ?? node.oneOf
    if (choices) return this.#choice(choices)
    if (node.allOf) return merged(node.allOf.map((part) => this.of(part)))
    const types = typesOf(node)
    const nullable = types.includes('null')
    const [type, ...others] = types.filter((one) => one !== 'null')
    if (others.length > 0) return { kind: 'scalar', nullable }
    return this.#ofType(type, node, nullable)
  }

  #ofType(type: string | undefined, node: SchemaNode, nullable: boolean): Shape {
    switch (type) {
      case 'string':
        return { kind: 'text', nullable }
      case 'number':
      case 'integer':
        return { kind: 'number', nullable }
      case 'boolean':
        return { kind: 'boolean', nullable }
      case 'array':
        return { kind: 'list', item: this.#item(node), ...(node.element && { element: node.element }), nullable }
      case 'object':
        return this.#object(node, nullable)
      default:
        return { kind: 'any', nullable: true }
    }
  }

  /** Wraps the inner lists of a list of lists, which XML could not separate otherwise. */
  #item(node: SchemaNode): Shape {
    const item = this.of(node.items ?? {})
    return item.kind === 'list' && item.element === undefined ? { ...item, element: 'member' } : item
  }

  #object(node: SchemaNode, nullable: boolean): Shape {
    const members = new Map<string, Member>()
    const names = new Map<string, string>()
    for (const [name, member] of Object.entries(node.properties ?? {})) {
      members.set(name, { shape: this.of(member), required: node.required?.includes(name) ?? false })
      const other = names.get(normalized(name))
      if (other !== undefined)
        throw new Error(
          `The members ${other} and ${name} of a schema have the same name, apart from case, underscores and hyphens`,
        )
      names.set(normalized(name), name)
    }
    const { additionalProperties: rest } = node
    return { kind: 'object', members, names, rest: rest ? this.of(rest === true ? {} : rest) : undefined, nullable }
  }

  #choice(choices: readonly SchemaNode[]): Shape {
    const shapes = choices.filter((choice) => choice.type !== 'null').map((choice) => this.of(choice))
    const shape = merged(shapes)
    return shapes.length < choices.length ? { ...shape, nullable: true } : shape
  }

  /** Registers a shape before it is complete, because a schema may refer to itself. */
  #referred(ref: string): Shape {
    const known = this.#byRef.get(ref)
    if (known) return known
    const shape = {} as Shape
    this.#byRef.set(ref, shape)
    const name = /^#\/\$defs\/(.+)$/.exec(ref)?.[1]
    const node = name === undefined ? this.#root : this.#root.$defs?.[name]
    return Object.assign(shape, this.of(node ?? {}))
  }
}

export function typesOf({ type, const: only, enum: values }: SchemaNode): readonly string[] {
  if (type !== undefined) return typeof type === 'string' ? [type] : type
  const examples = values ?? (only === undefined ? [] : [only])
  return [...new Set(examples.map((value) => (value === null ? 'null' : typeof value)))]
}

function merged(shapes: readonly Shape[]): Shape {
  const [first, ...others] = shapes
  if (!first) return { kind: 'any', nullable: true }
  const nullable = shapes.some((shape) => shape.nullable)
  if (others.every(({ kind }) => kind === first.kind)) {
    return first.kind === 'object' ? mergedObjects(shapes as (ObjectShape & Shape)[], nullable) : { ...first, nullable }
  }
  const structured = shapes.some(({ kind }) => kind === 'object' || kind === 'list' || kind === 'any')
  return { kind: structured ? 'any' : 'scalar', nullable }
}

function mergedObjects(shapes: readonly ObjectShape[], nullable: boolean): Shape {
  const members = new Map(shapes.flatMap((shape) => [...shape.members]).reverse())
  for (const [name, member] of members) {
    const everywhere = shapes.every((shape) => shape.members.get(name)?.required)
    members.set(name, { ...member, required: everywhere })
  }
  const names = new Map(shapes.flatMap((shape) => [...shape.names]).reverse())
  return { kind: 'object', members, names, rest: shapes.find(({ rest }) => rest)?.rest, nullable }
}

/**
 * Adds a member. A member may appear by two names, as in the specification's own documents, if both values are equal.
 * Throws InvalidArgument.
 */
export function putOnce(members: Map<string, unknown>, name: string, value: unknown, at: string): void {
  if (members.has(name) && JSON.stringify(members.get(name)) !== JSON.stringify(value)) {
    throw invalidArgument(at, `is given twice, as ${name} with another value`)
  }
  members.set(name, value)
}

/** Finds a member by one of its names. Throws InvalidArgument for an unknown name. */
export function memberNamed(
  { members, names, rest }: ObjectShape,
  given: string,
  path: string,
  aliases?: ReadonlyMap<string, string>,
): { readonly name: string; readonly shape: Shape } {
  const name = members.has(given) ? given : (names.get(normalized(given)) ?? aliases?.get(normalized(given)))
  const member = name === undefined ? undefined : members.get(name)
  if (name !== undefined && member) return { name, shape: member.shape }
  // zod silently drops a member `__proto__` from a record.
  if (rest && given !== '__proto__') return { name: given, shape: rest }
  const known = [...members.keys()]
  const choice = known.length > 0 ? `the members are ${known.join(', ')}` : 'no members are allowed here'
  throw invalidArgument(memberPath(path, given), `is not a member: ${choice}`)
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,4})?$/i

/** Returns undefined for text that is not a decimal number. */
export function numberOf(text: string): number | undefined {
  const trimmed = text.trim()
  return NUMBER.test(trimmed) ? Number(trimmed) : undefined
}

/** Reads `true`, `false`, `1` or `0` in any case; returns undefined for other text. */
export function booleanOf(text: string): boolean | undefined {
  switch (text.trim().toLowerCase()) {
    case 'true':
    case '1':
      return true
    case 'false':
    case '0':
      return false
    default:
      return undefined
  }
}

/** Normalizes the name of a member for comparison: `Task_Name`, `taskName` and `task-name` all mean TaskName. */
export function normalized(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase()
}

/** Longest name or value that an error repeats, characters. */
const MAX_SHOWN = 200

/**
 * Returns the error for an invalid argument.
 * @param name path of the argument: `Terms[1].MinerId`
 * @param what predicate of the sentence, after the name: `must be a number`
 */
export function invalidArgument(name: string, what: string, value?: unknown): S3Error {
  const shown = ['string', 'number', 'boolean'].includes(typeof value) ? String(value).slice(0, MAX_SHOWN) : undefined
  return new S3Error('InvalidArgument', {
    message: `${name.slice(0, MAX_SHOWN) || 'The document'} ${what}.`,
    fields: { ArgumentName: name.slice(0, MAX_SHOWN), ...(shown !== undefined && { ArgumentValue: shown }) },
  })
}

export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** The parts of a schema that zod documents for libraries: https://zod.dev/library-authors. */
interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
}

/**
 * Names of the members of a schema that is an object as such. Undefined for any other schema, such as a union, and for
 * names that are not distinct: `shapeOf` reads those, at a hundred times the cost.
 */
export function plainNames(schema: z.ZodType): readonly string[] | undefined {
  const { type, shape } = definitionOf(schema)
  if (type !== 'object' || shape === undefined) return undefined
  const names = Object.keys(shape)
  return new Set(names.map(normalized)).size === names.length ? names : undefined
}

export function isPlainList(schema: z.ZodType, member: string): boolean {
  const { type, shape } = definitionOf(schema)
  const found = type === 'object' ? shape?.[member] : undefined
  return found !== undefined && definitionOf(found).type === 'array'
}

function definitionOf(schema: z.ZodType): Definition {
  return schema._zod.def as unknown as Definition
}

/** Largest number of problems in one message. */
const MAX_REPORTED = 5

/** Parses a value by its schema. Throws InvalidArgument, naming the argument. */
export async function checked<T>(schema: z.ZodType<T>, value: unknown): Promise<T> {
  const result = await schema.safeParseAsync(value)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => ({ name: nameOf(path), message }))
  const [first] = problems
  const name = first?.name ?? ''
  if (problems.length === 1)
    throw invalidArgument(name, said(first?.message ?? ''), valueAt(value, result.error.issues[0]))
  const reported = problems.slice(0, MAX_REPORTED).map((one) => `${one.name || 'The document'}: ${one.message}`)
  throw new S3Error('InvalidArgument', { message: `${reported.join('; ')}.`, fields: { ArgumentName: name } })
}

/** Messages of plugins continue the name ("must be ..."); those of zod are whole sentences. */
function said(message: string): string {
  return /^[a-z]/.test(message) ? message : `is not valid: ${message}`
}

function nameOf(path: readonly PropertyKey[]): string {
  let name = ''
  for (const step of path) name = typeof step === 'number' ? `${name}[${step}]` : memberPath(name, String(step))
  return name
}

function valueAt(value: unknown, issue: { readonly path: readonly PropertyKey[] } | undefined): unknown {
  let at = value
  for (const step of issue?.path ?? []) at = (at as Record<PropertyKey, unknown> | undefined | null)?.[step]
  return at
}
