import { html } from '../../lib/html.js'
import { readTags, writeTags } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { notify } from '../../parts/notices.js'
import { PairsForm } from '../../parts/pairs.js'

export function Tags({ bucket, name }) {
  const client = session.value
  const tags = useLoaded((signal) => readTags(client, { bucket, key: name }, signal), [client, bucket, name])
  const save = async (pairs) => {
    await writeTags(client, { bucket, key: name }, pairs)
    notify('The tags were saved.')
    tags.reload()
  }
  return html`<h2>Tags</h2>
    <${Loaded} of=${tags} show=${(pairs) => html`<${PairsForm} pairs=${pairs} word="tag" save=${save} />`} />`
}
