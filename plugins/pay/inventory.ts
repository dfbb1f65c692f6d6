import type { InventoryFields, PluginHost } from 'dealgate/plugin'
import type { PayDeps } from './deps.js'

/** The column of inventories about payments. It asks no service: that would be a call for each object. */
export function payInventory({ made }: Pick<PayDeps, 'made'>, host: PluginHost): InventoryFields {
  return {
    action: 'pay:ListObjectUploads',
    fields: [
      {
        name: 'x-PayState',
        type: 'text',
        summary: 'State of the newest upload of the object by the storage payment API, as the service stated it then.',
      },
    ],
    async read(objects) {
      const [first] = objects
      if (!first) return []
      const uploads = await made.newestOf(objects, await host.own.creationTimes.now(first.bucket))
      return uploads.map((upload) => ({ 'x-PayState': upload && (upload.status ?? 'Unknown') }))
    },
  }
}
