import type { Reply, ReplyHeaders } from '../response/reply.js'
import type { Document } from './call.js'
import type { Format } from './format.js'
import type { Shape } from './shape.js'
import { xmlDocument } from './write-xml.js'

export interface DocumentForm {
  readonly format: Format
  /** Name of the root element. */
  readonly root: string
  /** Whose namespace it is in. */
  readonly plugin: string
  readonly shape: Shape
}

/** A document in the form that was asked for: JSON and XML have the same names. Never to be cached, for it is about one caller. */
export function documentReply(form: DocumentForm, document: Document, headers: ReplyHeaders = {}, status = 200): Reply {
  const { format, root, plugin, shape } = form
  const body = format === 'json' ? `${JSON.stringify(document)}\n` : xmlDocument(root, plugin, shape, document)
  return { status, headers: { 'content-type': `application/${format}`, 'cache-control': 'no-store', ...headers }, body }
}

/** Told by every answer of a call, errors too. */
export function versionHeader(plugin: string): Readonly<Record<string, string>> {
  return { 'x-dealgate-api-version': `${plugin}/1` }
}
