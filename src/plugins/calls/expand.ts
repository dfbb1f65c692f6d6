import { withinDeadline } from '../../../common/time.js'
import type { Context, Expansion, ExpansionSubject } from '../../api/context.js'
import type { CallFacts, Document } from '../../api/operation.js'
import { toPluginError } from '../deadlines.js'
import { type PageOf as Page, PageOf, type PageRequest } from './call.js'
import { hashOf } from './prepare.js'
import type { FrameQuery } from './read-body.js'
import { invalidArgument } from './shape.js'

type Call = Pick<CallFacts, 'name' | 'pages' | 'expands'>

/**
 * Finds the expansions that a request asks for. Throws InvalidArgument for a value that has no meaning here.
 * @param wanted values of the parameter `expand`
 */
export function expansionsOf(
  call: Call,
  wanted: readonly string[],
  { plugins }: Pick<Context, 'plugins'>,
): readonly Expansion[] {
  const known = call.expands ? plugins.expansions : []
  return [...new Set(wanted)].map((value) => {
    const found = known.find(({ name }) => name === value)
    if (found) return found
    const choice = known.map(({ name }) => name).join(', ')
    throw invalidArgument('expand', choice === '' ? 'has no values in this call' : `must be one of ${choice}`, value)
  })
}

/** Adds the members of the expansions to the items of the answer, or to the answer itself if it is no list. */
export async function expand(
  call: Call,
  expansions: readonly Expansion[],
  document: Document,
  context: Context,
): Promise<Document> {
  if (expansions.length === 0) return document
  const items = call.pages === undefined ? [document] : (document[call.pages] as readonly Document[])
  const subjects = items.map((item) => call.expands?.(item, document))
  const asked = subjects.filter((subject): subject is ExpansionSubject => subject !== undefined)
  const added = items.map((): Record<string, unknown> => ({}))
  for (const { name, member, join } of expansions) {
    const found = await withinDeadline(join(asked, context), context.limits.pluginDeadlineMs).catch((thrown) => {
      throw toPluginError(thrown, name, `expand=${name}`)
    })
    let at = 0
    for (const [i, subject] of subjects.entries()) {
      const value = subject && found[at++]
      if (value !== undefined) (added[i] as Record<string, unknown>)[member] = value
    }
  }
  const expanded = items.map((item, i) => ({ ...item, ...added[i] }))
  return call.pages === undefined ? (expanded[0] as Document) : { ...document, [call.pages]: expanded }
}

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
