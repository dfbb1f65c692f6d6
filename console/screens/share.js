import { formatSince, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { LONGEST, objectLink, requireReadable, secondsLeft } from '../lib/links.js'
import { session } from '../lib/session.js'
import { copyText } from '../parts/copy.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { clientOf, KeyPair } from '../parts/signed.js'

const TIMES = [
  [300, '5 minutes'],
  [3600, '1 hour'],
  [8 * 3600, '8 hours'],
  [86_400, '1 day'],
  [3 * 86_400, '3 days'],
  [LONGEST, '7 days'],
]

const PAIR =
  'The link is to outlive this session, so the key pair itself signs it. The pair is used for this link alone, in this browser, and then forgotten. The link ends before its time if the key pair is removed or gets another secret.'

/**
 * Makes a link by which everybody who has it gets the object, or one version of it, until a time. One that ends with the
 * session at the latest is signed by the session; any other by the key pair, which is asked for.
 */
export function ShareDialog({ bucket, name, versionId, onClose }) {
  const [link, setLink] = useState()
  return html`<${Dialog} title="Share" onClose=${onClose}>
    <p><${Name} text=${name.slice(name.lastIndexOf('/') + 1) || name} />${versionId && html`, version <${Name} text=${versionId} />`}</p>
    ${link ? html`<${Made} link=${link} onAgain=${() => setLink(undefined)} onClose=${onClose} />` : html`<${Choice} place=${{ bucket, key: name, versionId }} onMade=${setLink} onClose=${onClose} />`}
  <//>`
}

function Choice({ place, onMade, onClose }) {
  const [seconds, setSeconds] = useState(3600)
  const [inline, setInline] = useState(false)
  const { expires } = session.value
  const until = Date.now() + seconds * 1000
  const outlives = until > expires
  const action = async (values, signal) => {
    const client = outlives ? await clientOf(values) : session.value
    // A link that does not work is worse than none: the key pair may be mistyped, or may not read the object.
    await requireReadable(client, place, signal)
    // The form may have been open for long.
    const valid = outlives ? seconds : Math.min(seconds, secondsLeft(session.value))
    const ends = Date.now() + valid * 1000
    onMade({
      url: await objectLink(client, place, { seconds: valid, inline }),
      ends,
      by: outlives && client.signer.accessKeyId,
    })
  }
  return html`<${Form} action=${action} submit="Make the link" onCancel=${onClose}>
    <${Field}
      label="Valid for"
      kind="select"
      hint=${`Until ${formatTime(until)}. ${outlives ? `This session ends before that, ${formatTime(expires)}.` : 'Signed by this session.'}`}
      input=${{ name: 'seconds', value: seconds, onChange: ({ target }) => setSeconds(Number(target.value)) }}
    >
      ${TIMES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
    <//>
    <${Field}
      label="The browser"
      kind="select"
      hint=${inline ? 'Images, texts, sounds, films and PDF are shown. Pages run no script.' : 'Whoever opens the link gets a file.'}
      input=${{ name: 'how', value: inline ? 'inline' : 'attachment', onChange: ({ target }) => setInline(target.value === 'inline') }}
    >
      <option value="attachment">saves it</option>
      <option value="inline">shows it, if it can</option>
    <//>
    ${outlives && html`<${KeyPair} hint=${PAIR} />`}
  <//>`
}

function Made({ link: { url, ends, by }, onAgain, onClose }) {
  const until = `${formatTime(ends)} (${formatSince(ends, Date.now())})`
  return html`<p>
      Everyone who has the link gets the object until <strong>${until}</strong>. It is signed by
      ${by ? html` the key pair <${Name} text=${by} />: only its removal, or a new secret, ends the link earlier.` : ' this session. It cannot be taken back.'}
    </p>
    <${Field} label="Link" input=${{ value: url, readOnly: true, onFocus: ({ target }) => target.select() }} />
    <div class="buttons">
      <button type="button" class="main" onClick=${() => copyText(url, 'the link')}>Copy link</button>
      <button type="button" onClick=${onAgain}>Make another</button>
      <button type="button" onClick=${onClose}>Close</button>
    </div>
    <${Code} url=${url} title=${`QR code of the link, valid until ${formatTime(ends)}`} />`
}

/** The link for the camera of a telephone. What makes the code is loaded for the first link. */
function Code({ url, title }) {
  const part = useLoaded(() => import('../parts/qr.js'), [])
  return html`<${Loaded} of=${part} show=${({ QrCode }) => html`<${QrCode} text=${url} title=${title} />`} />`
}
