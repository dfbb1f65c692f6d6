import { element, XML_DECLARATION } from '../xml.js'
import type { Document } from './call.js'

/** A document as JSON, with an end of line, as people look at it with curl. */
export function writeJson(document: Document): string {
  return `${JSON.stringify(document)}\n`
}

/** A document as XML: the same names, a list is its element repeated, what is null or undefined is left out. */
export function writeXml(root: string, namespace: string, document: Document): string {
  return `${XML_DECLARATION}<${root} xmlns="${namespace}">${membersOf(document)}</${root}>`
}

function membersOf(document: Document): string {
  return Object.entries(document)
    .map(([name, value]) => memberElement(name, value))
    .join('')
}

/** Names that come from data, as those of a free map may, need not be names of elements. */
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/

function memberElement(name: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (!NAME.test(name)) return ''
  if (Array.isArray(value)) return value.map((one) => memberElement(name, one)).join('')
  if (typeof value === 'object') return `<${name}>${membersOf(value as Document)}</${name}>`
  return element(name, typeof value === 'number' || typeof value === 'boolean' ? value : String(value))
}
