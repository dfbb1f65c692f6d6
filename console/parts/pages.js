import { sendJson } from '../lib/api.js'
import { html, useEffect, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { useLoaded } from './load.js'

/**
 * A list of an extension call, page by page.
 * @param request as for `sendJson`; @param member the name of the list in the answer
 * @returns what `useLoaded` returns, `value` being { rows, next? }, and `more`, which loads the next page
 */
export function usePages(request, member) {
  const client = session.value
  const { path, query } = request
  const [further, setFurther] = useState([])
  const words = JSON.stringify([path, query])
  const first = useLoaded((signal) => sendJson(client, { ...request, signal }), [client, words])
  useEffect(() => setFurther([]), [first.value])
  const answers = first.value === undefined ? [] : [first.value, ...further]
  const next = answers.at(-1)?.NextContinuationToken
  const more = async () => {
    const page = await sendJson(client, { path, query: { ...query, 'continuation-token': next } })
    setFurther((pages) => [...pages, page])
  }
  return { ...first, value: first.value && { rows: answers.flatMap((answer) => answer[member]), next }, more }
}

/** The button for the next page, where there is one. */
export function More({ pages, onError }) {
  const [loading, setLoading] = useState(false)
  if (!pages.value?.next) return null
  const onClick = async () => {
    setLoading(true)
    await pages.more().catch(onError)
    setLoading(false)
  }
  return html`<button type="button" disabled=${loading} onClick=${onClick}>${loading ? 'Loading…' : 'Load more'}</button>`
}
