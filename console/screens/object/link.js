import { formatTime } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { session } from '../../lib/session.js'
import { copyText } from '../../parts/copy.js'
import { Field, Form } from '../../parts/form.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { downloadLink } from '../object-actions.js'

const TIMES = [
  [300, '5 minutes'],
  [3600, '1 hour'],
  [43_200, '12 hours'],
  [604_800, '7 days'],
]

/** Makes a link by which anybody can download the object. It ends with the session, too. */
export function Link({ bucket, name, versionId }) {
  const [link, setLink] = useState()
  const { expires } = session.value
  const action = async (values) => {
    const seconds = Math.min(Number(values.get('expires')), Math.floor((expires - Date.now()) / 1000))
    setLink({ url: await downloadLink(bucket, name, seconds, versionId), until: Date.now() + seconds * 1000 })
  }
  return html`<h2>Link</h2>
    <${Form} action=${action} submit="Make a link">
      <${Field} label="Valid for" kind="select" input=${{ name: 'expires' }} hint=${`Everyone who has the link can download the object. It ends with this session at the latest: ${formatTime(expires)}.`}>
        ${TIMES.map(([seconds, text]) => html`<option value=${seconds}>${text}</option>`)}
      <//>
    <//>
    ${
      link &&
      html`<${Field} label=${`Link, valid until ${formatTime(link.until)}`} input=${{ value: link.url, readOnly: true, onFocus: (event) => event.target.select() }} />
        <button type="button" onClick=${() => copyText(link.url, 'the link')}>Copy link</button>
        <${LinkCode} link=${link} />`
    }`
}

/** The link for the camera of a telephone. What makes the code is loaded for the first link. */
function LinkCode({ link: { url, until } }) {
  const part = useLoaded(() => import('../../parts/qr.js'), [])
  const title = `QR code of the link, valid until ${formatTime(until)}`
  return html`<${Loaded} of=${part} show=${({ QrCode }) => html`<${QrCode} text=${url} title=${title} />`} />`
}
