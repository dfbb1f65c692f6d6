import { html, useState } from '../../lib/html.js'
import { session } from '../../lib/session.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { notify } from '../../parts/notices.js'
import { SignedDialog } from '../../parts/signed.js'
import { inSentence, parsed, readDocument, storeDocument } from './documents.js'
import { Editor } from './editor.js'

const CHANGED =
  'Another program has changed this meanwhile. Nothing was saved: read it again, and change what is there now.'

/**
 * A setting of a bucket, as a form and as the document itself.
 * @param kind see documents.js, with `View`, which is the form: it gets { kind, bucket, value, saved, store, answer },
 *   and `store(text)` rejects if another program has changed the document since it was read; `check(bucket, text)`
 *   resolves with findings before anything is stored; `hint` says what it is for
 * @param saved is called after a change
 */
export function Setting({ bucket, kind, saved: onSaved, children }) {
  const client = session.value
  const [mode, setMode] = useState({ asText: false })
  const [{ refusal, stale, signing }, setState] = useState({})
  const [turn, setTurn] = useState(0)
  const document = useLoaded((signal) => readDocument(client, bucket, kind, signal), [client, bucket])
  const again = () => {
    setState({})
    setTurn(turn + 1)
  }
  /** Shows what was saved before it says so: what is filled in after that stays. */
  const done = async (text) => {
    await readDocument(client, bucket, kind).then(document.replace, document.reload)
    again()
    setMode({ asText: mode.asText })
    notify(`${kind.name}: ${text === '' ? 'removed' : 'saved'}.`)
    onSaved?.()
  }
  const reload = () => {
    again()
    document.reload()
  }
  /** Resolves with the findings that keep a document from being stored; with none once it is. */
  const set = async (text, { text: read, kept }, sure) => {
    const present = await readDocument(client, bucket, kind)
    if (present.text !== read || present.kept !== kept) {
      setState({ stale: true })
      throw Object.assign(new Error(CHANGED), { code: 'Changed' })
    }
    const findings = sure || text === '' ? [] : ((await kind.check?.(bucket, text)) ?? [])
    if (findings.length > 0) return findings
    if (kind.signed && text !== '') {
      setState({ signing: (own) => storeDocument(own, bucket, kind, text, kept).then(() => done(text)) })
      return []
    }
    try {
      await storeDocument(client, bucket, kind, text, kept)
    } catch (error) {
      if (error.code !== 'NotImplemented') throw error
      setState({ refusal: error.message })
      return []
    }
    await done(text)
    return []
  }
  const fromForm = (value) => async (text) => {
    const findings = await set(text, value)
    if (findings.length > 0) setMode({ asText: true, draft: { text, findings } })
  }
  const form = (value) =>
    html`<${kind.View} key=${value.text} kind=${kind} bucket=${bucket} saved=${value.text} value=${parsed(kind, value.text)} answer=${value.answer} store=${fromForm(value)} />`
  const editor = (value) =>
    html`<${Editor} key=${turn} kind=${kind} saved=${value.text} draft=${mode.draft} store=${(text, sure) => set(text, value, sure)} reload=${reload} />`
  const unsupported = document.error?.code === 'NotImplemented' ? document.error.message : undefined
  return html`<section class="setting">
    <div class="setting-head">
      <h2>${kind.name}</h2>
      ${unsupported === undefined && html`<${Switch} kind=${kind} asText=${mode.asText} choose=${(asText) => setMode({ asText })} />`}
    </div>
    ${kind.hint && html`<p class="hint">${kind.hint}</p>`}
    ${refusal && html`<p class="quiet" role="status">This server does not do that: <${Name} text=${refusal} /></p>`}
    ${
      stale &&
      html`<p class="problem">What is shown is older than what is saved. <button type="button" onClick=${reload}>Read it again</button></p>`
    }
    ${
      unsupported === undefined
        ? html`<${Loaded} of=${document} show=${mode.asText ? editor : form} />`
        : html`<p class="quiet">Not offered here: <${Name} text=${unsupported} /></p>`
    }
    ${unsupported === undefined && children}
    ${
      signing &&
      html`<${SignedDialog} title=${`Save ${inSentence(kind.name)}`} submit="Save" action=${signing} onClose=${() => setState({})} />`
    }
  </section>`
}

/** The two ways in which a document is shown. */
function Switch({ kind: { name, json }, asText, choose }) {
  const button = (text, value, label) =>
    html`<button type="button" aria-pressed=${String(asText === value)} aria-label=${label} onClick=${() => choose(value)}>${text}</button>`
  return html`<div class="switch" role="group" aria-label=${`How ${name} is shown`}>
    ${button('Form', false, `${name} as a form`)} ${button(json ? 'JSON' : 'XML', true, `${name} as ${json ? 'JSON' : 'XML'}`)}
  </div>`
}
