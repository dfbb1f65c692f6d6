import { html, useState } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { headObject } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { isReachable } from '../lib/signer.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { Acl } from './acl.js'
import { pathTo } from './bucket-tabs.js'
import { DealsOf } from './deals.js'
import { LifeOf } from './life.js'
import { Attributes, Details } from './object/facts.js'
import { Actions, DeletedActions, DeletedNote, EarlierNote } from './object/head.js'
import { Tags } from './object/tags.js'
import { VersionsOf } from './object/versions.js'
import { Preview } from './preview.js'

/** One object, or one of its versions: what is known about it, and what can be done with it. */
export function ObjectScreen({ params: { bucket }, query }) {
  const key = query.get('key') ?? ''
  const version = query.get('version') ?? undefined
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  return html`<${Crumbs} links=${pathTo(bucket, folder)} />
    ${
      key !== '' && isReachable(key)
        ? html`<${Reachable} key=${`${version}/${key}`} bucket=${bucket} name=${key} version=${version} folder=${folder} />`
        : html`<${Titled} name=${key}>
            <p class="problem">
              Browsers remove the parts <code>.</code> and <code>..</code> from every address, so that this console cannot
              request this object, nor one without a name. Use another client of S3.
            </p>
          <//>`
    }`
}

function Titled({ name, actions, children }) {
  return html`<${Page} title=${`Object ${name}`} heading=${html`<${Name} text=${name} />`} actions=${actions}>${children}<//>`
}

/** @param version id of the version that the address names; undefined for the current one */
function Reachable({ bucket, name, version, folder }) {
  const client = session.value
  const object = useLoaded(
    (signal) => readObject(client, bucket, name, version, signal),
    [client, bucket, name, version],
  )
  const [turn, setTurn] = useState(0)
  // The list of versions has its own pages, and is read again after a change elsewhere on the screen.
  const changed = () => {
    object.reload()
    setTurn(turn + 1)
  }
  const left = () => goTo(['buckets', bucket, 'objects'], { prefix: folder })
  const versions = (shown) =>
    html`<${VersionsOf} key=${turn} bucket=${bucket} name=${name} shown=${shown} changed=${object.reload} />`
  const { facts, current, marker } = object.value ?? {}
  // Parts that change with a version have its id; those that are about the object follow the current one.
  const versionId = version === undefined ? undefined : facts?.versionId
  const place = { bucket, key: name, versionId }
  const actions =
    marker !== undefined
      ? html`<${DeletedActions} bucket=${bucket} name=${name} version=${version} marker=${marker} changed=${changed} />`
      : facts &&
        html`<${Actions} place=${place} facts=${facts} current=${current} folder=${folder} changed=${changed} left=${left} />`
  return html`<${Titled} name=${name} actions=${actions}>
    <${Loaded}
      of=${object}
      show=${() =>
        marker !== undefined
          ? html`<${DeletedNote} version=${version} />${versions(marker)}`
          : html`<${EarlierNote} place=${place} facts=${facts} current=${current} />
              <${Attributes} facts=${facts} />
              <${Folded} title="Checksums and metadata"><${Details} place=${place} facts=${facts} /><//>
              <${Folded} title="Edit tags"><${Tags} place=${place} /><//>
              <${Folded} title="Edit rights (ACL)"><${Acl} place=${place} /><//>
              <${Preview} bucket=${bucket} name=${name} versionId=${versionId} size=${facts.size} />
              ${facts.versionId !== undefined && versions(facts.versionId)}
              <${DealsOf} bucket=${bucket} name=${name} versionId=${versionId} />
              <${LifeOf} bucket=${bucket} name=${name} versionId=${versionId} facts=${facts} changed=${changed} />`}
    />
  <//>`
}

/**
 * @returns { facts, current }: `current` is the id of the current version, undefined if there is none; or { marker }: the
 *   id of the delete marker that the address leads to
 */
async function readObject(client, bucket, key, version, signal) {
  const head = (versionId) =>
    headObject(client, { bucket, key, versionId }, signal).catch((error) => {
      if (error.deleteMarker === undefined) throw error
      return { marker: error.deleteMarker }
    })
  const [facts, current] = await Promise.all([
    head(version),
    version === undefined ? undefined : head().catch(() => undefined),
  ])
  if (facts.marker !== undefined) return { marker: facts.marker }
  return { facts, current: version === undefined ? facts.versionId : current?.versionId }
}
