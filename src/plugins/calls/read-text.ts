import type { XmlNode } from '../../../common/xml.js'
import {
  booleanOf,
  invalidArgument,
  type ListShape,
  memberNamed,
  memberPath,
  numberOf,
  type ObjectShape,
  putOnce,
  type Shape,
} from './shape.js'

/** Converts the fields of a form or of a query to the children of an element. */
export function fieldsNode(fields: Iterable<readonly [name: string, value: string]>): XmlNode {
  const children = new Map<string, XmlNode[]>()
  for (const [name, text] of fields) {
    const node = { path: name, place: () => name, text, children: new Map() }
    const others = children.get(name)
    if (others) others.push(node)
    else children.set(name, [node])
  }
  return { path: '', place: () => '', text: '', children }
}

/**
 * Converts XML, a form or a query to the shape of a schema. A value that does not fit stays text, so that the schema
 * refuses it.
 * @throws InvalidArgument for members that are unknown or given more often than allowed
 */
export function fromText(shape: Shape, node: XmlNode, path = '', aliases?: ReadonlyMap<string, string>): unknown {
  switch (shape.kind) {
    case 'number':
      return numberOf(node.text) ?? leafText(node, path)
    case 'boolean':
      return booleanOf(node.text) ?? leafText(node, path)
    case 'text':
    case 'scalar':
      return leafText(node, path)
    case 'list':
      return items(shape, [node], path)
    case 'object':
      return members(shape, node, path, aliases)
    case 'any':
      return anything(node)
  }
}

function leafText(node: XmlNode, path: string): string {
  if (node.children.size > 0) throw invalidArgument(path, 'must not hold elements')
  return node.text
}

function members(shape: ObjectShape, node: XmlNode, path: string, aliases?: ReadonlyMap<string, string>): unknown {
  if (node.text.trim() !== '') throw invalidArgument(path, 'must hold elements, not text', node.text)
  const found = new Map<string, unknown>()
  for (const [given, nodes] of node.children) {
    if (shape.rest && given === 'Entry' && !shape.members.has(given)) {
      for (const entry of nodes) put(found, shape, ...entryOf(entry, path), path)
    } else put(found, shape, given, nodes, path, aliases)
  }
  for (const [name, { shape: inner, required }] of shape.members) {
    if (found.has(name) || !required) continue
    // An empty list has no elements, and null has no representation in XML.
    if (inner.kind === 'list' && inner.element === undefined) found.set(name, [])
    else if (inner.nullable && inner.kind !== 'any') found.set(name, null)
  }
  return Object.fromEntries(found)
}

function put(
  found: Map<string, unknown>,
  shape: ObjectShape,
  given: string,
  nodes: readonly XmlNode[],
  path: string,
  aliases?: ReadonlyMap<string, string>,
): void {
  const { name, shape: inner } = memberNamed(shape, given, path, aliases)
  const at = memberPath(path, given)
  const value = memberValue(inner, nodes, at)
  if (value !== undefined) putOnce(found, name, value, at)
}

/** Returns undefined for an absent value. */
function memberValue(shape: Shape, nodes: readonly XmlNode[], path: string): unknown {
  const [only] = nodes
  if (shape.kind === 'list') return items(shape, nodes, path)
  if (nodes.length > 1 || !only) {
    if (shape.kind === 'any') return nodes.map(anything)
    throw invalidArgument(path, 'is given more than once')
  }
  return isUnsaid(shape, only) ? undefined : fromText(shape, only, path)
}

/** Returns true for `<Price/>` and `price=` where a number or boolean is expected: they count as absent. */
function isUnsaid({ kind }: Shape, node: XmlNode): boolean {
  return (kind === 'number' || kind === 'boolean') && node.text.trim() === '' && node.children.size === 0
}

/** Reads the items of `<Tags><Tag>a</Tag><Tag>b</Tag></Tags>` or `<Tags>a</Tags><Tags>b</Tags>`. */
function items(shape: ListShape, nodes: readonly XmlNode[], path: string): unknown[] {
  const [only] = nodes
  const inner = nodes.length === 1 && only ? wrapped(shape, only, path) : undefined
  return (inner ?? nodes).map((node, i) => fromText(shape.item, node, `${path}[${i}]`))
}

/** Returns the items inside the single element of a list; undefined if that element is an item itself. */
function wrapped({ item, element }: ListShape, node: XmlNode, path: string): readonly XmlNode[] | undefined {
  const [[name, inside] = [], ...others] = node.children
  if (name === undefined)
    return node.text.trim() === '' && (element !== undefined || item.kind === 'object') ? [] : undefined
  if (element === undefined && isStructured(item)) return undefined
  if (others.length > 0) throw invalidArgument(path, 'must hold elements of one name')
  return inside
}

function isStructured({ kind }: Shape): boolean {
  return kind === 'object' || kind === 'list' || kind === 'any'
}

/**
 * Reads `<Entry><Name>n</Name><Value>v</Value></Entry>`, the form of members whose names are not valid element names.
 */
function entryOf(entry: XmlNode, path: string): [name: string, values: readonly XmlNode[]] {
  const { Name, Value, ...others } = Object.fromEntries(entry.children)
  if (Name?.length !== 1 || !Name[0] || !Value || Object.keys(others).length > 0) {
    throw invalidArgument(memberPath(path, 'Entry'), 'must hold a Name and its Value')
  }
  return [Name[0].text, Value]
}

function anything(node: XmlNode): unknown {
  if (node.children.size === 0) return node.text
  return Object.fromEntries(
    [...node.children].map(([name, nodes]) => [
      name,
      nodes.length === 1 ? anything(nodes[0] as XmlNode) : nodes.map(anything),
    ]),
  )
}
