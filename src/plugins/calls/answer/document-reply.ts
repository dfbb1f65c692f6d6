import type { Reply, ReplyHeaders } from '../../../response/reply.js'
import type { Format } from '../codec/format.js'
import type { Shape } from '../codec/shape.js'
import { csvDocument } from '../codec/write-csv.js'
import { xmlDocument } from '../codec/write-xml.js'
import type { Document } from '../declare/call.js'

export interface DocumentForm {
  readonly format: Format
  /** Name of the root element. */
  readonly root: string
  /** Name of the plugin, which determines the XML namespace. */
  readonly plugin: string
  readonly shape: Shape
}

/**
 * Serializes a document as JSON or XML, with the same names. The reply must not be cached, because it depends on the
 * caller.
 */
export function documentReply(form: DocumentForm, document: Document, headers: ReplyHeaders = {}, status = 200): Reply {
  const { format, root, plugin, shape } = form
  const body = format === 'json' ? `${JSON.stringify(document)}\n` : xmlDocument(root, plugin, shape, document)
  return { status, headers: { 'content-type': `application/${format}`, 'cache-control': 'no-store', ...headers }, body }
}

/** Serializes the items of a list as CSV. The reply must not be cached. */
export function csvReply(shape: Shape, list: string, document: Document, headers: ReplyHeaders = {}): Reply {
  const { NextContinuationToken: next } = document
  return {
    status: 200,
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'cache-control': 'no-store',
      ...(typeof next === 'string' && { 'x-dealgate-next-continuation-token': next }),
      ...headers,
    },
    body: csvDocument(shape, list, document),
  }
}

/** Header of every reply of a call, errors included. */
export function versionHeader(plugin: string): Readonly<Record<string, string>> {
  return { 'x-dealgate-api-version': `${plugin}/1` }
}
