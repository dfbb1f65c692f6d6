import { element, escapeXml, XML_DECLARATION } from '../xml.js'
import type { Document } from './call.js'
import type { Shape } from './shape.js'

/** The namespace of what a plugin answers. */
function namespaceOf(plugin: string): string {
  return `urn:dealgate:${plugin}:1`
}

/** A document as XML, with the names that it has as JSON. Members that are undefined or null are left out. */
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
  // Names that are data need not be those of elements.
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

/** Names of elements, without those that are written in another way. */
function isElementName(name: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(name) && !/^xml/i.test(name) && name !== 'Entry'
}
