{#-- A table is replaced in one commit; whoever reads it never finds it gone. --#}
{% materialization table, adapter='headrace', supported_languages=['sql'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {% if existing is not none and existing.type != 'table' %}
    {% do adapter.check_query(sql) %}
    {% do adapter.drop_relation(existing) %}
  {% endif %}

  {% call statement('main') %}
    {{ create_table_as(False, target_relation, sql) }}
  {% endcall %}

  {% do persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{% macro headrace__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language != 'sql' -%}
    {% do exceptions.raise_compiler_error('dbt-headrace has no Python models; declare a Python function in functions.py.') %}
  {%- elif temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    create or replace table {{ relation }}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {%- set compiled_code = get_select_subquery(compiled_code) %}
    {% endif %}
    using iceberg
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ comment_clause() }}
    as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}
