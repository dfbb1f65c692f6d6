import { html, useEffect, useRef, useState } from '../lib/html.js'
import { Name } from './name.js'

/**
 * Calls `read` now and whenever a member of `inputs` changes; what an earlier call brings then no longer counts.
 * @param read takes an AbortSignal
 * @returns { value?, error?, loading, reload }: `value` stays while it is read again
 */
export function useLoaded(read, inputs) {
  const [state, setState] = useState({ loading: true })
  const [turn, setTurn] = useState(0)
  const former = useRef(inputs)
  useEffect(() => {
    const abort = new AbortController()
    const same = former.current.every((input, i) => Object.is(input, inputs[i]))
    former.current = inputs
    setState(({ value }) => ({ loading: true, ...(same && { value }) }))
    read(abort.signal).then(
      (value) => abort.signal.aborted || setState({ loading: false, value }),
      (error) => abort.signal.aborted || setState({ loading: false, error }),
    )
    return () => abort.abort()
  }, [...inputs, turn])
  return { ...state, reload: () => setTurn((n) => n + 1) }
}

/** Shows what was loaded, that it is loading, or why it cannot be. @param show makes elements of the value */
export function Loaded({ of, show }) {
  if (of.error) return html`<${Problem} error=${of.error} retry=${of.reload} />`
  if (of.value === undefined) return html`<p class="quiet" role="status">Loading…</p>`
  return show(of.value)
}

/** An error where its value would be. */
export function Problem({ error, retry }) {
  const denied = error.code === 'AccessDenied'
  return html`<div class="problem" role="alert">
    <p>
      <strong>${denied ? 'Not allowed' : 'This failed'}: </strong><${Name} text=${error.message} /> (${error.code ?? error.name})
    </p>
    ${error.requestId && html`<p class="quiet">Request ${error.requestId}</p>`}
    ${retry && !denied && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`
}
