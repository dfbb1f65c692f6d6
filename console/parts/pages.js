import { sendJson } from '../lib/api.js'
import { html } from '../lib/html.js'
import { goTo, route } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Field, Form } from './form.js'
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

/** By list, the tokens of the pages that led to the one shown: a server tells only the next one. */
const trails = new Map()
const TRAILS = 20

/** The token of the page before, null for the first; undefined where nobody came from there. */
function before(list, token) {
  const trail = trails.get(list) ?? []
  const at = token === null ? 0 : trail.indexOf(token)
  // Pages are read one after the other; one that is opened by its address begins a trail of its own.
  return at < 0 ? undefined : at === 0 ? null : trail[at - 1]
}

/** Links to the first, the previous and the next page, where there are such. @param next token of the next page */
export function PageLinks({ next }) {
  const { path, query } = route.value
  const rest = new URLSearchParams(query)
  rest.delete('token')
  const list = `${path}?${rest}`
  const token = query.get('token')
  const to = (token) => {
    const pairs = new URLSearchParams(rest)
    if (token) pairs.set('token', token)
    return `#${path}${pairs.size > 0 ? `?${pairs}` : ''}`
  }
  const goOn = () => {
    const trail = trails.get(list) ?? []
    const kept = token === null ? [] : trail.includes(token) ? trail.slice(0, trail.indexOf(token) + 1) : [token]
    trails.delete(list)
    trails.set(list, [...kept, next])
    if (trails.size > TRAILS) trails.delete(trails.keys().next().value)
  }
  if (token === null && next === undefined) return undefined
  const previous = token !== null && before(list, token)
  return html`<nav class="buttons" aria-label="Pages">
    ${token !== null && html`<a class="button" href=${to()}>First page</a>`}
    ${(previous || previous === null) && html`<a class="button" href=${to(previous)}>Previous page</a>`}
    ${next !== undefined && html`<a class="button" href=${to(next)} onClick=${goOn}>Next page</a>`}
  </nav>`
}

/** Fields whose values go into the address of the screen `to`, which asks the server for what they select. */
export function Filters({ query, to, children }) {
  const find = async (values) => goTo(to, Object.fromEntries([...values].map(([name, text]) => [name, text.trim()])))
  return html`<${Form} key=${String(query)} action=${find} submit="Show"><div class="filters">${children}</div><//>`
}

/** A text of a filter. */
export function Words({ label, name, value }) {
  return html`<${Field} label=${label} input=${{ name, defaultValue: value, autocomplete: 'off', spellcheck: false }} />`
}
