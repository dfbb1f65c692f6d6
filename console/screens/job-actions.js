import { sendJson } from '../lib/api.js'
import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Confirm } from '../parts/dialog.js'
import { notify } from '../parts/notices.js'

export const RUNNING = new Set(['New', 'Active', 'Unknown', 'Cancelling'])

/** The buttons for what can be done with a job in its state. @param done is called when the server has accepted it */
export function JobActions({ id, status, done }) {
  const [dialog, setDialog] = useState()
  if (status === undefined || status === 'Complete') return null
  const act = async (what, signal, json) => {
    const path = `/-/jobs/v1/${uriEncode(id)}/${what}`
    await sendJson(session.value, { method: 'POST', path, json, signal })
    notify(`The request to ${what} the job was accepted.`)
    done()
  }
  const button = (View, text) => html`<button type="button" onClick=${() => setDialog({ View })}>${text}</button>`
  return html`<div class="buttons">
      ${RUNNING.has(status) && status !== 'Unknown' ? button(Cancel, 'Cancel…') : button(Retry, 'Retry…')}
      ${status === 'Unknown' && button(Resolve, 'It has failed…')}
    </div>
    ${dialog && html`<${dialog.View} act=${act} onClose=${() => setDialog(undefined)} />`}`
}

function Cancel({ act, onClose }) {
  return html`<${Confirm} title="Cancel job" submit="Cancel the job" action=${(signal) => act('cancel', signal)} onClose=${onClose}>
    <p>The job ends before its next step. What it has already sent, such as a deal, stays. A cancelled job can be retried.</p>
  <//>`
}

function Retry({ act, onClose }) {
  return html`<${Confirm} title="Retry job" submit="Run it again" action=${(signal) => act('retry', signal)} onClose=${onClose}>
    <p>The job runs again with the same request, and may cost money. An unknown job may have taken effect: retry it only if you know that it did nothing.</p>
  <//>`
}

function Resolve({ act, onClose }) {
  const failed = { Status: 'Failed', FailureCode: 'ResolvedByOperator' }
  return html`<${Confirm} title="Settle job" submit="It has failed" action=${(signal) => act('resolve', signal, failed)} onClose=${onClose}>
    <p>The outcome of this job is unknown. State that it has failed if you know that nothing was made or paid. Its result can be recorded with the call ResolveJob.</p>
  <//>`
}
