// The documents that configure a bucket: how each is read, shown and stored.
import { send, sendJson } from '../../lib/api.js'
import { without, writeDocument } from '../../lib/s3.js'
import { Element, parseXml } from '../../lib/xml.js'

/**
 * What a kind of document is.
 * @typedef {object} Kind
 * @property {string} name as people call it
 * @property {string} query the sub-resource; @property {object} [more] further members of the query
 * @property {string} [root] name of the root of an XML document; @property {boolean} [json]
 * @property {boolean} [call] a call beyond S3: read by GET, stored by POST
 * @property {string} [absent] code of the error for a bucket without it
 * @property {string} [none] document that stands for none where nothing can be deleted
 * @property {(text: string) => boolean} [isNone] whether a document says nothing
 * @property {boolean} [stays] it can be changed, and not removed
 * @property {boolean} [signed] the key pair itself signs it: the server refuses sessions
 * @property {string} [kept] name of a header that belongs to it: a document that is stored without it changes it
 * @property {(value: any) => any} [shown] the part of the JSON answer that is stored
 */

/** @returns { text, kept?, answer? }: the text '' for none */
export async function readDocument(client, bucket, kind, signal) {
  const query = { [kind.query]: '', ...kind.more }
  if (kind.call) {
    const answer = await sendJson(client, { bucket, query, signal }).catch(without(kind.absent))
    const value = answer && (kind.shown?.(answer) ?? answer)
    const isEmpty = value === undefined || Object.keys(value).length === 0
    return { text: isEmpty ? '' : JSON.stringify(value, null, 2), answer }
  }
  const answer = await send(client, { bucket, query, signal }).catch(without(kind.absent))
  if (answer === undefined) return { text: '' }
  const text = pretty(await answer.text(), kind)
  return { text: kind.isNone?.(text) ? '' : text, kept: (kind.kept && answer.headers.get(kind.kept)) ?? undefined }
}

/** @param text '' removes the document */
export async function storeDocument(client, bucket, kind, text, kept) {
  const query = { [kind.query]: '', ...kind.more }
  if (kind.call) {
    const json = kind.stored?.(JSON.parse(text || '{}')) ?? JSON.parse(text || '{}')
    await sendJson(client, { method: 'POST', bucket, query, json })
    return
  }
  if (text === '' && kind.none === undefined) {
    await send(client, { method: 'DELETE', bucket, query })
    return
  }
  const place = { bucket, query: kind.more, headers: kept && { [kind.kept]: kept } }
  await writeDocument(client, place, kind.query, text || kind.none, kind.json ? 'application/json' : 'application/xml')
}

/** The name of a setting within a sentence or a button: `object lock`, but `CORS rules`. */
export function inSentence(name) {
  return name.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
}

/** A document as a value that a form changes: a tree of elements, or what JSON says. */
export function parsed(kind, text) {
  if (kind.json) return JSON.parse(text || '{}')
  return text === '' ? new Element(kind.root) : parseXml(text)
}

/** The text of a value; '' for one that says nothing. */
export function textOf(kind, value) {
  if (value === undefined || value === null) return ''
  if (kind.json) return Object.keys(value).length === 0 ? '' : JSON.stringify(value, null, 2)
  return value.children.length === 0 && !kind.stays ? '' : indented(value)
}

function pretty(text, { json }) {
  if (!json) return indented(parseXml(text))
  return JSON.stringify(JSON.parse(text), null, 2)
}

/** Each element on a line. One without content stays so: a line break would become its text. */
export function indented(element, depth = 0) {
  const before = '  '.repeat(depth)
  if (element.children.length === 0) return `${before}${element}`
  const lines = element.children.map((child) => indented(child, depth + 1))
  return [`${before}<${element.name}${element.attributes}>`, ...lines, `${before}</${element.name}>`].join('\n')
}
