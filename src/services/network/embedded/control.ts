import type { EpochClock } from '../epoch-clock.js'
import type { Expiry } from '../expiry.js'
import { NetworkError } from '../network.js'
import type { Cars } from './cars.js'
import { applyFaults } from './damage.js'
import { type Fault, type Faults, faultNames, type ProviderFault } from './faults.js'
import type { Providers } from './providers.js'

/** What tests and demonstrations do to the network. */
export interface NetworkControl {
  /**
   * Switches a fault of a provider on or off. Resolves when that is durable, and done to the data the provider has. Rejects with NetworkError NoSuchProvider,
   * and with RangeError when there is no such fault.
   */
  setFault(minerId: string, fault: Fault, on: boolean): Promise<void>
  /** Those that are on. */
  faults(): readonly ProviderFault[]
  /** Resolves when it is that many epochs later, and what ended by then is dropped. Rejects with RangeError unless that is a whole number above 0. */
  advance(epochs: number): Promise<void>
}

export function createControl(
  providers: Providers,
  faults: Faults,
  cars: Cars,
  epochs: EpochClock,
  expiry: Expiry,
): NetworkControl {
  return {
    async setFault(minerId, fault, on) {
      if (providers.find(minerId) === undefined) {
        throw new NetworkError('NoSuchProvider', `There is no storage provider "${minerId}" in this network.`)
      }
      if (!faultNames.includes(fault)) {
        throw new RangeError(`There is no fault "${fault}"; there are ${faultNames.join(', ')}.`)
      }
      await faults.set(minerId, fault, on)
      for (const car of await cars.of(minerId)) await applyFaults(car, minerId, faults)
    },
    faults: () => faults.all(),
    async advance(by) {
      await epochs.advance(by)
      await expiry.run()
    },
  }
}
