import { sendJson } from '../lib/api.js'
import { eachAtOnce } from '../lib/below.js'
import { withClientToken } from '../lib/client-token.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { notify } from '../parts/notices.js'

/** Requests to the server at the same time. */
const AT_ONCE = 4

/** Brings back selected objects whose bytes are only in deals: each folder by one job of the server. */
export function RestoreObjects({ bucket, items, done, onClose }) {
  const [requested, setRequested] = useState(0)
  const words = formatCount(items.length, 'selected entry', 'selected entries')
  const action = async (values, signal) => {
    const client = session.value
    const days = values.get('days')
    let here = 0
    // An object whose bytes are here needs no restore.
    const isHere = (error) => {
      if (error.code !== 'InvalidObjectState') throw error
      here++
    }
    const restore = async ({ name, folder }) => {
      const place = folder ? { bucket } : { bucket, key: name }
      const json = { ...(folder && { Prefix: name }), ...(days && { Days: Number(days) }) }
      const request = { ...place, query: { 'x-deal-retrieve': '' }, json }
      await withClientToken(request, (token) =>
        sendJson(client, { ...request, headers: { ...token, prefer: 'wait=0' }, signal }).catch(isHere),
      )
      setRequested((count) => count + 1)
    }
    await eachAtOnce(items, AT_ONCE, restore)
    notify(`The restore of ${words} was requested${here > 0 ? `; ${here} of them need none` : ''}.`)
    done()
    onClose()
  }
  return html`<${Dialog} title="Restore objects" onClose=${onClose}>
    <${Form} action=${action} submit="Restore" onCancel=${onClose}>
      <p>The gateway retrieves the bytes of ${words} from deals that hold them. Objects whose bytes are here stay as they are. That can take hours, and costs what the providers charge for a retrieval. A folder is one <a href=${linkTo(['jobs'])}>job</a>, which can be cancelled.</p>
      <${Field} label="Days" hint="How long the copies stay on the gateway. Empty: for good." input=${{ name: 'days', type: 'number', min: 1, max: 36_500 }} />
      ${requested > 0 && html`<p role="status">${requested} of ${words} requested</p>`}
    <//>
  <//>`
}
