{#- Tenants of metadata that they share: operations for a target without `catalog`, whose user sees all of them. -#}
{% macro ducklake_create_tenant(name) -%}
  {%- if execute -%}
    {%- do log('Made tenant ' ~ adapter.create_tenant(name).name, info=True) -%}
  {%- endif -%}
{%- endmacro %}

{% macro ducklake_drop_tenant(name) -%}
  {%- if execute -%}
    {%- do log('Dropped tenant ' ~ adapter.drop_tenant(name).name ~ '; its files are where they were', info=True) -%}
  {%- endif -%}
{%- endmacro %}

{% macro ducklake_tenants(json=false) -%}
  {%- if execute -%}
    {%- set tenants = adapter.tenants() -%}
    {%- if json -%}
      {%- do print(tojson(tenants)) -%}
    {%- else -%}
      {%- for tenant in tenants -%}
        {%- do print(tenant.name ~ (' (forked)' if tenant.parent is not none else '')) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- On PostgreSQL: a role that sees one tenant's metadata and no other's. Without a name, the `metadata_schema` of the
    target is the tenant's. -#}
{% macro ducklake_protect_tenant(role, name=none) -%}
  {%- if execute -%}
    {%- do adapter.protect_tenant(role, name) -%}
    {%- do log('Role ' ~ role ~ ' sees ' ~ ('tenant ' ~ name if name else 'the lake of this target') ~ ' alone', info=True) -%}
  {%- endif -%}
{%- endmacro %}
