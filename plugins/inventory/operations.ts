import {
  type AnyOperation,
  bucketSetting,
  type Context,
  decodeToken,
  defineOperation,
  encodeToken,
  reply,
  S3Error,
  xml,
} from 'dealgate/plugin'
import { columnsFor, fieldNames } from './columns.js'
import {
  baseOf,
  configurationElements,
  type InventoryConfiguration,
  readConfiguration,
  requireDestination,
} from './configuration.js'
import { requireColumns } from './visible.js'

/** Both are those of S3. */
const MAX_CONFIGURATIONS = 1000
const PAGE = 100

const ROOT = 'InventoryConfiguration'

const action = 's3:GetInventoryConfiguration'

/** The configurations of inventories of a bucket. */
const configurations = bucketSetting({
  name: 'BucketInventoryConfiguration',
  subresource: 'inventory',
  byId: true,
  action: 'InventoryConfiguration',
  get: {
    async run({ bucket, query }, context) {
      const id = query.get('id')
      const found = (await confirmed(context, bucket)).find((one) => one.id === id)
      return found ? reply.xml(xml.document(ROOT, configurationElements(found))) : 'NoSuchConfiguration'
    },
  },
  put: {
    partly:
      'CSV and Parquet; ORC is InvalidArgument. A key pair that is not temporary sets it, with whose rights it is written.',
    async run(bytes, { bucket, query }, context) {
      const asked = await readConfiguration(bytes, query.get('id') ?? '', fieldNames(context.plugins.inventories))
      const configuration = { ...asked, by: lastingKey(context), since: Date.now() }
      await requireDestination(context, asked.destination, baseOf(bucket, asked))
      const columns = columnsFor(asked, context.plugins.inventories)
      await requireColumns(context, columns, { bucket, key: asked.filter ?? '' })
      await change(context, bucket, (present) => {
        const others = present.filter(({ id }) => id !== asked.id)
        if (others.length >= MAX_CONFIGURATIONS) throw new S3Error('TooManyConfigurations')
        return [...others, configuration].sort((one, other) => compareUtf8(one.id, other.id))
      })
      return undefined
    },
  },
  remove: {
    async run(bucket, context, { query }) {
      const id = query.get('id')
      await change(context, bucket, (present) => {
        const others = present.filter((one) => one.id !== id)
        if (others.length === present.length)
          throw new S3Error('NoSuchConfiguration', { fields: { BucketName: bucket } })
        return others
      })
    },
  },
})

const listConfigurations = defineOperation({
  name: 'ListBucketInventoryConfigurations',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBucketInventoryConfigurations.html',
  access: 'owner',
  action,
  needs: { bucket: ['read'] },
  on: { method: 'GET', resource: 'bucket', query: ['inventory'], params: ['continuation-token'] },
  async run({ bucket, query }, context) {
    const token = query.get('continuation-token')
    const after = token ? decodeToken(token, 'continuation-token') : ''
    const following = (await confirmed(context, bucket)).filter(({ id }) => compareUtf8(id, after) > 0)
    const page = following.slice(0, PAGE)
    const last = following.length > PAGE ? page.at(-1) : undefined
    return reply.xml(
      xml.document(
        'ListInventoryConfigurationsResult',
        [
          xml.element('ContinuationToken', token),
          ...page.map((one) => `<${ROOT}>${configurationElements(one)}</${ROOT}>`),
          xml.element('IsTruncated', last !== undefined),
          xml.element('NextContinuationToken', last && encodeToken(last.id)),
        ].join(''),
      ),
    )
  },
})

export const inventoryConfigurations: readonly AnyOperation[] = [...configurations, listConfigurations]

/** The configurations of a bucket as no other process has changed them. */
export async function confirmed({ settings }: Context, bucket: string): Promise<readonly InventoryConfiguration[]> {
  return (await settings.confirmed(bucket, 'inventory')) ?? []
}

async function change(
  context: Context,
  bucket: string,
  to: (present: readonly InventoryConfiguration[]) => readonly InventoryConfiguration[],
): Promise<void> {
  const { settings, state } = context
  const run = async () => {
    const changed = to((await settings.confirmed(bucket, 'inventory')) ?? [])
    if (changed.length === 0) await settings.delete(bucket, 'inventory')
    else await settings.set(bucket, 'inventory', changed)
  }
  await state.locks.withName(`inventory/${bucket}`, run, { logger: context })
}

/** Throws AccessDenied for a session: its rights end with it, and inventories would fail from then on. */
function lastingKey({ caller }: Context): string {
  if (caller && !caller.identity.session) return caller.identity.accessKeyId
  throw new S3Error('AccessDenied', {
    message:
      'An inventory is written with the rights of the key pair that sets it, now and later: sign with one that is not temporary.',
  })
}

/** Orders ids by the bytes of their UTF-8, as S3 does: -1, 0 or 1. */
function compareUtf8(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}
