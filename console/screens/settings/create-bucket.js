import { sendJson } from '../../lib/api.js'
import { html, useState } from '../../lib/html.js'
import { linkTo } from '../../lib/router.js'
import { session } from '../../lib/session.js'
import { Dialog } from '../../parts/dialog.js'
import { Check, Form } from '../../parts/form.js'
import { Problem, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { Pairs } from '../../parts/pairs.js'
import { BucketName, brokenRules } from './bucket-name.js'
import { stepsOf } from './create-steps.js'
import { EncryptionFields } from './encryption.js'
import { RetentionFields } from './lock.js'
import { QuotaFields } from './quota.js'

/** What the server and its gateway offer: everything, for a key pair that may not know. */
function useOffered() {
  const client = session.value
  const read = async (signal) => {
    const { Gateway, Plugins } = await sendJson(client, { path: '/-/capabilities', signal })
    const has = (feature) => Gateway.Features.includes(feature)
    const quota = has('bucketQuotas') && Plugins.some(({ Name: name }) => name === 'quota')
    return { versions: has('versions'), locks: has('locks'), quota }
  }
  const { value, error } = useLoaded(read, [client])
  return value ?? (error && { versions: true, locks: true, quota: true })
}

/**
 * Makes a bucket with its settings, one call after the other. If one fails, it says what is made and what is not.
 * @param done takes the sentence of what was made
 */
export function CreateBucket({ onClose, done }) {
  const [name, setName] = useState('')
  const [run, setRun] = useState()
  const [tags, setTags] = useState([])
  const goOn = async (steps, signal) => {
    for (const step of steps.filter(({ state }) => state !== 'done')) {
      try {
        await step.send(session.value, signal)
        step.state = 'done'
        delete step.error
      } catch (error) {
        Object.assign(step, { state: 'failed', error })
        // Nothing is made yet: the form stays as it is.
        if (step === steps[0]) throw error
        return setRun([...steps])
      }
    }
    onClose()
    return done(`The bucket ${name} was created.`)
  }
  const leave = () => {
    onClose()
    done(`The bucket ${name} was created, without all of its settings.`)
  }
  if (run) return html`<${Unfinished} name=${name} steps=${run} goOn=${goOn} onClose=${leave} />`
  return html`<${Dialog} title="Create bucket" onClose=${onClose}>
    <${Form} action=${(values, signal) => goOn(stepsOf(name, values), signal)} submit="Create" disabled=${name === '' || brokenRules(name).length > 0} onCancel=${onClose}>
      <${BucketName} name=${name} setName=${setName} />
      <${Options} tags=${tags} setTags=${setTags} />
    <//>
  <//>`
}

function Options({ tags, setTags }) {
  const offered = useOffered()
  const [locks, setLocks] = useState(false)
  if (offered === undefined) return html`<p class="quiet" role="status">Loading…</p>`
  const lockHint =
    'Versions can then be locked against deletion. It needs versioning, can only be turned on for good, and cannot be removed later.'
  return html`${offered.versions && html`<${Check} key=${locks} label="Versioning" hint=${locks ? 'On, because object lock needs it.' : 'Keeps what is overwritten or deleted.'} input=${{ name: 'versioning', defaultChecked: locks, disabled: locks }} />`}
    ${offered.locks && html`<${Check} label="Object lock" hint=${lockHint} input=${{ name: 'locks', checked: locks, onChange: (event) => setLocks(event.target.checked) }} />`}
    ${locks && html`<${RetentionFields} asks />`}
    <${EncryptionFields} />
    ${offered.quota && html`<${QuotaFields} />`}
    <fieldset><legend>Tags</legend><${Pairs} rows=${tags} setRows=${setTags} word="tag" /></fieldset>`
}

const WORDS = { done: '● Done', failed: '✕ Failed', waiting: '○ Not done' }

/** What is made of a bucket whose settings could not all be made, and the way on. */
function Unfinished({ name, steps, goOn, onClose }) {
  const failed = steps.find(({ state }) => state === 'failed')
  return html`<${Dialog} title="The bucket is not complete" onClose=${onClose}>
    <p>The bucket <strong><${Name} text=${name} /></strong> is there. Of its settings:</p>
    <ul>${steps.map(({ what, state }) => html`<li>${WORDS[state]}: ${what}</li>`)}</ul>
    <${Problem} error=${failed.error} />
    <${Form} action=${(_, signal) => goOn(steps, signal)} submit="Go on" onCancel=${onClose} />
    <p><a href=${linkTo(['buckets', name, 'settings'])} onClick=${onClose}>Leave it so, and see its settings</a></p>
  <//>`
}
