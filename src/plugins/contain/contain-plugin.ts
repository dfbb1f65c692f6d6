import type { InventoryFields, InventoryValues } from '../../api/inventory.js'
import type { Plugin } from '../../api/plugin.js'
import { isObject, kindOf } from './check-reply.js'
import { containOperation } from './contain-operation.js'
import { containStorageClass } from './contain-storage-class.js'
import { contained, type Deadlines } from './contained.js'

/**
 * Contains the handlers of a plugin: one that throws, never ends or returns an invalid reply causes an InternalError
 * for that request, and the log names plugin and operation. A result after the deadline is discarded.
 */
export function containPlugin(plugin: Plugin, deadlines: Deadlines): Plugin {
  const { name, operations, storageClasses, inventory } = plugin
  return {
    ...plugin,
    operations: operations.map((operation) => containOperation(name, operation, deadlines)),
    storageClasses: storageClasses?.map((offered) => containStorageClass(name, offered, deadlines)),
    ...(plugin.demandsEncryption && { demandsEncryption: (bucket) => containDemand(plugin, bucket, deadlines) }),
    ...(inventory && { inventory: containInventory(name, inventory, deadlines) }),
  }
}

/** The server stores nothing without the answer: the bucket may demand that its objects are encrypted. */
async function containDemand(plugin: Plugin, bucket: string, { hookDeadlineMs: ms }: Deadlines): Promise<boolean> {
  const check = (answer: unknown) => {
    if (typeof answer !== 'boolean') throw new TypeError(`it answered with ${kindOf(answer)}, which is no boolean`)
  }
  const demand = { plugin: plugin.name, work: 'demandsEncryption', ms, check }
  return contained(demand, async () => (await plugin.demandsEncryption?.(bucket)) as boolean)
}

/** A page of an inventory without the values of a plugin would say that there are none. */
function containInventory(plugin: string, inventory: InventoryFields, deadlines: Deadlines): InventoryFields {
  const { fields, action } = inventory
  return {
    fields,
    ...(action !== undefined && { action }),
    read(objects) {
      const check = (values: unknown) => {
        if (!Array.isArray(values) || values.length !== objects.length || !values.every((one) => isObject(one)))
          throw new TypeError('it did not return the values of each object')
      }
      const reading = { plugin, work: 'read() of its fields of inventories', ms: deadlines.pluginDeadlineMs, check }
      return contained<readonly InventoryValues[]>(reading, () => inventory.read(objects))
    },
  }
}
