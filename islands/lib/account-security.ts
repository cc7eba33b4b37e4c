// What travels of one's own second factors, passkeys and bound accounts; times in Unix seconds.

export interface FactorStatus {
  enabled: boolean;
  /** Too many wrong codes: none counts until then. 0: not locked. */
  locked_until: number;
  backup_codes_left: number;
  created_at: number;
}

export interface PasskeyRow {
  id: number;
  name: string;
  created_at: number;
  last_used_at: number;
  device_type: string;
  backed_up: boolean;
}

export interface Binding {
  provider: string;
  label: string;
  icon: string;
  kind: string;
  account: { label: string; created_at: number; last_used_at: number } | null;
  enabled: boolean;
}

export interface AccountSecurity {
  factor: FactorStatus;
  passkeys: PasskeyRow[];
  bindings: Binding[];
}
