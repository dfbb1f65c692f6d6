import { formatTime } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { isRetained, lockOf, lockRuleOf, writeHold, writeRetention } from '../../lib/locks.js'
import { headObject } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Dialog } from '../../parts/dialog.js'
import { Check, Field, Form } from '../../parts/form.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { notify } from '../../parts/notices.js'
import { inputTime } from '../past.js'
import { Reason } from './delete-version.js'

const DAY_MS = 86_400_000
/** A new retention is proposed for so many days. */
const PROPOSED_DAYS = 30

const MODES = {
  GOVERNANCE:
    'GOVERNANCE: nobody deletes this version before the date, but for those who have the action s3:BypassGovernanceRetention and say so.',
  COMPLIANCE:
    'COMPLIANCE: nobody, not even the owner of the bucket or of this server’s keys, can delete this version, shorten the retention or end it before that date. It can only be extended.',
}

/** The menu entries that lock a version, in a bucket with object lock; none elsewhere. @param ask opens a dialog */
export function useLockItems(bucket, isVersioned, ask) {
  const client = session.value
  const read = async (signal) => ({ rule: isVersioned ? await lockRuleOf(client, bucket, signal) : undefined })
  const rule = useLoaded(read, [client, bucket, isVersioned])
  if (rule.value?.rule === undefined) return []
  return [
    { text: 'Retention…', action: () => ask(LockDialog, { title: 'Retention', View: Retention }) },
    { text: 'Legal hold…', action: () => ask(LockDialog, { title: 'Legal hold', View: Hold }) },
  ]
}

/** A dialog about the lock as it is now. @param place { bucket, key, versionId }; @param View its content */
function LockDialog({ title, View, place, done, onClose }) {
  const client = session.value
  const read = async (signal) => lockOf((await headObject(client, place, signal)).headers)
  const lock = useLoaded(read, [client, place.bucket, place.key, place.versionId])
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${Loaded} of=${lock} show=${(lock) => html`<${View} place=${place} lock=${lock} done=${done} onClose=${onClose} />`} />
  <//>`
}

/** Sets, changes or ends the retention of a version. @param place { bucket, key, versionId }; @param lock as it is */
function Retention({ place, lock, done, onClose }) {
  const isSet = isRetained(lock)
  const isFixed = isSet && lock.mode === 'COMPLIANCE'
  const [mode, setMode] = useState(isSet ? lock.mode : 'GOVERNANCE')
  const [date, setDate] = useState(() => inputTime(isSet ? lock.until : Date.now() + PROPOSED_DAYS * DAY_MS))
  const [bypass, setBypass] = useState(false)
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const until = new Date(date).getTime()
  const isShorter = isSet && !isFixed && (mode === '' || until < lock.until)
  const action = async (_, signal) => {
    if (isFixed && until < lock.until)
      throw new Error(
        `In COMPLIANCE mode the retention can only be extended: choose a date after ${formatTime(lock.until)}.`,
      )
    const retention = mode === '' ? undefined : { mode, until }
    await writeRetention(session.value, place, retention, isShorter ? { bypass, reason } : {}, signal)
    notify(
      retention
        ? `${place.key} is retained until ${formatTime(until)} (${mode}).`
        : `The retention of ${place.key} was ended.`,
    )
    onClose()
    done()
  }
  // A retention in this mode cannot be taken back.
  const isFinal = mode === 'COMPLIANCE'
  const disabled = (isFinal && typed !== place.key) || (isShorter && !bypass)
  return html`<${Form} action=${action} submit=${mode === '' ? 'End the retention' : isSet ? 'Change' : 'Set'} danger=${isFinal || isShorter} disabled=${disabled} onCancel=${onClose}>
      ${isSet && html`<p>Now: ${lock.mode} until ${formatTime(lock.until)}.</p>`}
      <${Field} label="Mode" kind="select" input=${{ name: 'mode', value: mode, onChange: (event) => setMode(event.target.value) }}>
        ${Object.keys(MODES).map((name) => (name === 'COMPLIANCE' || !isFixed) && html`<option value=${name} selected=${name === mode}>${name}</option>`)}
        ${isSet && !isFixed && html`<option value="" selected=${mode === ''}>None: end the retention</option>`}
      <//>
      <p><strong>${MODES[mode] ?? 'The version can be deleted then, unless it is under a legal hold.'}</strong></p>
      ${mode !== '' && html`<${Field} label="Until" hint=${Number.isNaN(until) ? 'In the time zone of this browser.' : `In the time zone of this browser; in UTC ${new Date(until).toISOString().slice(0, 16).replace('T', ' ')}.`} input=${{ type: 'datetime-local', step: 1, required: true, value: date, onInput: (event) => setDate(event.target.value) }} />`}
      ${
        isShorter &&
        html`<${Check} label="Pass by the retention in GOVERNANCE mode" hint="Needs the action s3:BypassGovernanceRetention." input=${{ checked: bypass, onChange: (event) => setBypass(event.target.checked) }} />
          <${Reason} value=${reason} change=${setReason} required />`
      }
      ${isFinal && html`<${Field} label=${html`Type <strong><${Name} text=${place.key} /></strong> to confirm`} input=${{ value: typed, autocomplete: 'off', spellcheck: false, 'aria-label': 'Type the key to confirm', onInput: (event) => setTyped(event.target.value) }} />`}
    <//>`
}

/** Sets or ends the legal hold of a version. */
function Hold({ place, lock: { hold }, done, onClose }) {
  const [reason, setReason] = useState('')
  const action = async (_, signal) => {
    await writeHold(session.value, place, !hold, reason, signal)
    notify(hold ? `The legal hold of ${place.key} was ended.` : `${place.key} is under a legal hold.`)
    onClose()
    done()
  }
  return html`<${Form} action=${action} submit=${hold ? 'End the hold' : 'Set the hold'} danger=${hold} onCancel=${onClose}>
      <p>${hold ? 'The version can then be deleted, unless a retention protects it.' : 'Nobody can delete this version until somebody ends the hold, who needs the action s3:PutObjectLegalHold. It has no end by itself.'}</p>
      <p class="quiet">It is about this version alone: <strong><${Name} text=${place.key} /></strong>. New versions can still be stored.</p>
      <${Reason} value=${reason} change=${setReason} required=${hold} />
    <//>`
}
