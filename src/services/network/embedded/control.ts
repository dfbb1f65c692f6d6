import { NetworkError } from '../network.js'
import type { EpochClock } from '../units/epoch-clock.js'
import type { Expiry } from '../units/expiry.js'
import type { Cars } from './cars.js'
import { applyFaults } from './damage.js'
import { type Fault, type Faults, faultNames, type ProviderFault } from './faults.js'
import type { Providers } from './providers.js'

/** Controls of the network for tests and demonstrations. */
export interface NetworkControl {
  /**
   * Switches a fault of a provider on or off. Resolves when the switch is durable and applied to the data of the
   * provider. Rejects with NetworkError NoSuchProvider, or with RangeError when the fault does not exist.
   */
  setFault(minerId: string, fault: Fault, on: boolean): Promise<void>
  /** The faults that are on. */
  faults(): readonly ProviderFault[]
  /**
   * Advances the epoch. Resolves when deals that have ended by then are dropped. Rejects with RangeError unless
   * `epochs` is a whole number above 0.
   */
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
