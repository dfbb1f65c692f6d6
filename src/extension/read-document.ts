import { S3Error } from '../errors/s3-error.js'
import { parseDocument, type XmlNode } from '../xml.js'
import type { Document } from './call.js'
import type { Shape } from './shape.js'

export type DocumentFormat = 'json' | 'xml' | 'form'

/**
 * In which of the formats a body is written: what Content-Type says, but for forms and for none, where the first character tells, because `curl -d` calls everything
 * a form.
 */
export function formatOf(contentType: string | undefined, bytes: Buffer): DocumentFormat {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (/[/+]json$/.test(type)) return 'json'
  if (/[/+]xml$/.test(type)) return 'xml'
  const first = bytes.subarray(0, 64).toString('latin1').trimStart()[0]
  return first === '{' || first === '[' ? 'json' : first === '<' ? 'xml' : 'form'
}

/**
 * A body as the object that a schema of this shape can judge: members by their own names, text turned into what is wanted. What is no document of its format is MalformedXML
 * or InvalidRequest; what does not fit the shape is left as it is, for the schema to name.
 * @param aliases other names of members
 */
export async function readDocument(
  bytes: Buffer,
  format: DocumentFormat,
  shape: Shape,
  aliases: Readonly<Record<string, string>> = {},
): Promise<Document> {
  const naming = { aliases: new Map(Object.entries(aliases).map(([from, to]) => [plain(from), to])) }
  if (bytes.every((byte) => byte <= 0x20)) return {}
  if (format === 'xml') return asDocument(fromXml((await parseDocument(bytes)).node, shape, naming))
  const text = decode(bytes)
  if (format === 'form') return asDocument(fromValue(formObject(text), shape, naming))
  return asDocument(fromValue(parseJson(text), shape, naming))
}

interface Naming {
  /** By plain name. */
  readonly aliases: ReadonlyMap<string, string>
}

/** Names are compared without case, `_` and `-`: `Task_Name`, `task-name` and `TaskName` are one. */
export function plain(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, '')
}

function asDocument(value: unknown): Document {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Document
  throw new S3Error('InvalidRequest', { message: 'The request body must be one document: an object with members.' })
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('InvalidRequest', { message: 'The request body is not valid UTF-8.', cause })
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new S3Error('InvalidRequest', { message: 'The request body is not valid JSON.', cause })
  }
}

function formObject(text: string): Record<string, unknown> {
  const members = Object.create(null) as Record<string, unknown>
  for (const [name, value] of new URLSearchParams(text.trim())) {
    const before = members[name]
    members[name] = before === undefined ? value : [before, value].flat()
  }
  return members
}

function fromValue(value: unknown, shape: Shape, naming: Naming): unknown {
  if (typeof value === 'string') return fromText(value, shape)
  if (Array.isArray(value)) return shape.kind === 'list' ? value.map((one) => fromValue(one, shape.of, naming)) : value
  if (typeof value !== 'object' || value === null) return value
  if (shape.kind !== 'object') return value
  return gather(Object.entries(value), shape, naming, (member, of) => fromValue(member, of, naming))
}

/** Text from a form or an element, as what the shape wants if it can be that. */
function fromText(text: string, shape: Shape): unknown {
  const trimmed = text.trim()
  switch (shape.kind) {
    case 'number':
      return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(trimmed) ? Number(trimmed) : text
    case 'boolean':
      return /^(true|1)$/i.test(trimmed) ? true : /^(false|0)$/i.test(trimmed) ? false : text
    case 'list':
      return [fromText(text, shape.of)]
    default:
      return text
  }
}

function fromXml(node: XmlNode, shape: Shape, naming: Naming): unknown {
  if (shape.kind === 'list') return [fromXml(node, shape.of, naming)]
  if (node.children.size === 0) return shape.kind === 'object' ? {} : fromText(node.text, shape)
  if (shape.kind !== 'object') {
    const members = [...node.children].map(([name, nodes]) => [name, nodes.map((one) => fromXml(one, ANY, naming))])
    return Object.fromEntries(members.map(([name, values]) => [name, values?.length === 1 ? values[0] : values]))
  }
  return gather([...node.children], shape, naming, (nodes, of) => fromNodes(nodes, of, naming))
}

const ANY: Shape = { kind: 'any' }

/** The elements of one name. A list may stand there itself, or inside an element that has its name: `<Tags><Tag/></Tags>`. */
function fromNodes(nodes: readonly XmlNode[], shape: Shape, naming: Naming): unknown {
  if (shape.kind !== 'list') {
    const values = nodes.map((node) => fromXml(node, shape, naming))
    return values.length === 1 ? values[0] : values
  }
  const [only] = nodes
  const inner = nodes.length === 1 && only ? [...only.children.values()] : []
  const wrapped = inner.length === 1 && shape.of.kind !== 'object' ? inner[0] : undefined
  if (!wrapped && only && nodes.length === 1 && only.children.size === 0 && only.text.trim() === '') return []
  return (wrapped ?? nodes).map((node) => fromXml(node, shape.of, naming))
}

/** Members by the names that the shape has for them. Throws InvalidArgument for one that is there by two names. */
function gather<T>(
  entries: readonly (readonly [string, T])[],
  shape: Extract<Shape, { kind: 'object' }>,
  naming: Naming,
  read: (member: T, shape: Shape) => unknown,
): Record<string, unknown> {
  const known = new Map([...shape.members.keys()].map((name) => [plain(name), name]))
  const members = Object.create(null) as Record<string, unknown>
  for (const [sent, member] of entries) {
    const alias = naming.aliases.get(plain(sent))
    const name = known.get(plain(sent)) ?? (alias !== undefined && shape.members.has(alias) ? alias : sent)
    const value = read(member, shape.members.get(name) ?? ANY)
    if (name in members && JSON.stringify(members[name]) !== JSON.stringify(value)) {
      throw new S3Error('InvalidArgument', {
        message: `${name} is there more than once, with different values.`,
        fields: { ArgumentName: name },
      })
    }
    members[name] = value
  }
  return members
}
