import { invalidArgument } from '../codec/names.js'
import type { FrameQuery } from '../codec/read-query.js'
import { type PageOf as Page, PageOf, type PageRequest } from '../declare/call.js'
import { hashOf } from '../declare/client-token.js'

/**
 * Reads which page a request asks for. A token holds the start of the page and a hash of its binding: it is valid only
 * for the same call, bucket and filter. Throws InvalidArgument.
 * @param binding the values that the list depends on
 */
export function pageRequest({ maxItems, token }: FrameQuery, binding: readonly unknown[]): PageRequest {
  if (token === undefined) return { limit: maxItems, from: undefined }
  const [bound, from] = decode(token)
  if (bound !== mark(binding) || from === undefined) {
    throw invalidArgument('continuation-token', 'does not belong to this list', token)
  }
  return { limit: maxItems, from }
}

/** Returns the opaque token of the page that begins at `next`. */
export function tokenOf(next: string, binding: readonly unknown[]): string {
  return Buffer.from(`${mark(binding)}${next}`).toString('base64url')
}

const MARK_LENGTH = 16

function mark(binding: readonly unknown[]): string {
  return hashOf(...binding).slice(0, MARK_LENGTH)
}

function decode(token: string): [mark: string, from: string | undefined] {
  const text = Buffer.from(token, 'base64url').toString()
  const from = text.slice(MARK_LENGTH)
  return [text.slice(0, MARK_LENGTH), from === '' ? undefined : from]
}

/**
 * Takes a page from a list or an async iterable. `next` is the number of items before the next page. Throws
 * InvalidArgument.
 */
export async function takePage(list: unknown, { limit, from = '0' }: PageRequest): Promise<Page<unknown>> {
  if (list instanceof PageOf) return list
  const start = /^\d{1,15}$/.test(from) ? Number(from) : Number.NaN
  if (Number.isNaN(start)) throw invalidArgument('continuation-token', 'does not belong to this list')
  const end = start + limit
  if (Array.isArray(list)) return new PageOf(list.slice(start, end), list.length > end ? String(end) : undefined)
  const items: unknown[] = []
  let at = 0
  for await (const item of list as AsyncIterable<unknown>) {
    if (at === end) return new PageOf(items, String(end))
    if (at++ >= start) items.push(item)
  }
  return new PageOf(items, undefined)
}
