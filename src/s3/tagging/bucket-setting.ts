import type { Tag } from '../../state/state.js'

declare module '../../state/records/setting-types.js' {
  interface SettingTypes {
    tagging: readonly Tag[]
  }
}
