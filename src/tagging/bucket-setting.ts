import type { Tag } from '../state/state.js'

declare module '../state/bucket-settings.js' {
  interface SettingTypes {
    tagging: readonly Tag[]
  }
}
