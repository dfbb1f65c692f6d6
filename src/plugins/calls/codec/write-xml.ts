import { element, escapeXml, XML_DECLARATION } from '../../../common/xml/xml.js'
import type { Document } from '../declare/call.js'
import type { Shape } from './shape.js'

/** Returns the XML namespace of a plugin's documents. */
export function namespaceOf(plugin: string): string {
  return `urn:dealgate:${plugin}:1`
}

/** Serializes a document as XML, with the names that it has as JSON. Omits members that are undefined or null. */
export function xmlDocument(root: string, plugin: string, shape: Shape, document: Document): string {
  return `${XML_DECLARATION}<${root} xmlns="${namespaceOf(plugin)}">${content(shape, document)}</${root}>`
}

const ANY: Shape = { kind: 'any', nullable: true }

function content(shape: Shape, value: unknown): string {
  if (typeof value !== 'object' || value === null) return escapeXml(String(value ?? ''))
  if (Array.isArray(value)) return value.map((item) => one('member', ANY, item)).join('')
  return Object.entries(value)
    .map(([name, member]) => memberElement(shape, name, member))
    .join('')
}

function memberElement(shape: Shape, name: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  const known = shape.kind === 'object' ? shape.members.get(name)?.shape : undefined
  if (known) return elements(name, known, value)
  const rest = shape.kind === 'object' ? shape.rest : undefined
  // A name that is data may not be a valid element name.
  if (!rest && isElementName(name)) return elements(name, ANY, value)
  return `<Entry>${element('Name', name)}${elements('Value', rest ?? ANY, value)}</Entry>`
}

function elements(name: string, shape: Shape, value: unknown): string {
  if (!Array.isArray(value)) return one(name, shape, value)
  if (shape.kind !== 'list') return value.map((item) => one(name, ANY, item)).join('')
  const { element: inner } = shape
  if (inner === undefined) return value.map((item) => one(name, shape.item, item)).join('')
  return `<${name}>${value.map((item) => one(inner, shape.item, item)).join('')}</${name}>`
}

function one(name: string, shape: Shape, value: unknown): string {
  if (shape.kind === 'list' && Array.isArray(value)) return elements(name, shape, value)
  return `<${name}>${content(shape, value)}</${name}>`
}

/** Returns true for valid element names, except `Entry`, which has a meaning of its own. */
function isElementName(name: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(name) && !/^xml/i.test(name) && name !== 'Entry'
}
