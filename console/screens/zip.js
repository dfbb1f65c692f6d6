import { sendJson, urlOf } from '../lib/api.js'
import { formatBytes, formatCount } from '../lib/format.js'
import { html } from '../lib/html.js'
import { follow } from '../lib/links.js'
import { session } from '../lib/session.js'
import { Dialog } from '../parts/dialog.js'
import { Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'

/** A link that begins a download needs to be valid for its beginning alone, seconds. */
const LINK_SECONDS = 300

/**
 * Downloads the selected objects and folders as one archive. The server looks at all of them first, and keeps the
 * selection, because an address has no room for it; the browser then saves the archive as it comes, and holds none of it.
 */
export function ZipObjects({ bucket, folder, items, onClose }) {
  const client = session.value
  const one = items.length === 1 && items[0].folder ? items[0].name : folder
  const body = {
    Keys: items.filter((item) => !item.folder).map(({ name }) => name),
    Prefixes: items.filter((item) => item.folder).map(({ name }) => name),
    Folder: folder || undefined,
    Name: one.split('/').at(-2) || bucket,
  }
  const keep = (signal) => sendJson(client, { bucket, query: { 'x-zip-selection': '' }, json: body, signal })
  const kept = useLoaded(keep, [client])
  const download = async () => {
    const url = urlOf(client, { bucket, query: { selection: kept.value.SelectionId, 'x-zip': '' } })
    follow(await client.signer.presign({ url, expires: LINK_SECONDS }))
    notify('The browser saves the archive. A download that ends early is not complete: its archive does not open.')
    onClose()
  }
  const show = ({ Objects, Bytes }) => html`<p>
      ${formatCount(Objects, 'object')}, ${formatBytes(Bytes)}, as one file <strong><${Name} text=${`${body.Name}.zip`} /></strong>. Nothing is compressed.
    </p>`
  return html`<${Dialog} title="Download as ZIP" onClose=${onClose}>
    <${Form} action=${download} submit="Download" disabled=${kept.value === undefined} onCancel=${onClose}>
      <${Loaded} of=${kept} show=${show} />
    <//>
  <//>`
}
