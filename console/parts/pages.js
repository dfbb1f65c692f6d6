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

/** Fields whose values go into the address of the screen `to`, which asks the server for what they select. */
export function Filters({ query, to, children }) {
  const find = async (values) => goTo(to, Object.fromEntries([...values].map(([name, text]) => [name, text.trim()])))
  return html`<${Form} key=${String(query)} action=${find} submit="Show"><div class="filters">${children}</div><//>`
}

/** A choice of a filter. */
export function OneOf({ label, name, of, chosen }) {
  return html`<${Field} label=${label} kind="select" input=${{ name }}>
    <option value="">All</option>
    ${of.map((word) => html`<option value=${word} selected=${word === chosen}>${word}</option>`)}
  <//>`
}

/** A text of a filter. */
export function Words({ label, name, value }) {
  return html`<${Field} label=${label} input=${{ name, defaultValue: value, autocomplete: 'off', spellcheck: false }} />`
}
