import { sendJson } from '../lib/api.js'
import { html } from '../lib/html.js'
import { route } from '../lib/router.js'
import { session } from '../lib/session.js'
import { useLoaded } from './load.js'

/**
 * A list of an extension call: the page that `token` in the address of the screen names. One page is kept at a time, so
 * that memory does not grow with the list.
 * @param request as for `sendJson`; @param member the name of the list in the answer
 * @returns what `useLoaded` returns, `value` being { rows, next?, answer }
 */
export function usePages({ path, query }, member) {
  const client = session.value
  const asked = { ...query, 'continuation-token': route.value.query.get('token') ?? undefined }
  const words = JSON.stringify([path, asked])
  const answer = useLoaded((signal) => sendJson(client, { path, query: asked, signal }), [client, words])
  const value = answer.value && {
    rows: answer.value[member],
    next: answer.value.NextContinuationToken,
    answer: answer.value,
  }
  return { ...answer, value }
}

/** Links to the first and the next page, where there are such. @param next token of the next page */
export function PageLinks({ next }) {
  const { path, query } = route.value
  const to = (token) => {
    const pairs = new URLSearchParams(query)
    pairs.delete('token')
    if (token !== undefined) pairs.set('token', token)
    return `#${path}${pairs.size > 0 ? `?${pairs}` : ''}`
  }
  return html`<nav class="buttons" aria-label="Pages">
    ${query.has('token') && html`<a href=${to()}>First page</a>`} ${next !== undefined && html`<a href=${to(next)}>Next page</a>`}
  </nav>`
}
