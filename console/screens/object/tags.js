import { html } from '../../lib/html.js'
import { readTags, refuseChanged, writeTags } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { notify } from '../../parts/notices.js'
import { PairsForm } from '../../parts/pairs.js'

/** @param place { bucket, key, versionId? } */
export function Tags({ place }) {
  const client = session.value
  const tags = useLoaded(
    (signal) => readTags(client, place, signal),
    [client, place.bucket, place.key, place.versionId],
  )
  const save = async (pairs) => {
    refuseChanged(tags.value, await readTags(client, place))
    await writeTags(client, place, pairs)
    notify('The tags were saved.')
    tags.reload()
  }
  return html`<h2>Tags</h2>
    <${Loaded} of=${tags} show=${(pairs) => html`<${PairsForm} pairs=${pairs} word="tag" save=${save} />`} />`
}
